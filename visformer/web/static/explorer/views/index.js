/**
 * The views of the explorer by name, in the order of their buttons. A new one is a file that declares itself, and its
 * name here; words.py has its words, view_NAME and view_NAME_about. Python reads the names from these imports.
 *
 * A view declares
 *   needs: what of the scene it draws, see AttentionView.scene: "matrix", "thumb", "series" (each head by itself), "grid"
 *   label: the word that names it to screen readers; without one, view_NAME_about
 *   mount(parent, host): an object with `element`, and if it draws on one `canvas`, which then has the keyboard; host:
 *     {hover(cell), lock(cell, add), hoverHead(place), openHead(place, add), zoomed()}
 * What is mounted has show(scene), and may have point(scene): show it where only cells in focus have changed; reveal(cell):
 * have it in sight; keys(): key to what it does; zoom(direction) and zoomed, for the toolbar's buttons.
 */

import { heatmap } from "./heatmap.js"
import { arcs } from "./arcs.js"
import { tokens } from "./tokens.js"
import { layer } from "./layer.js"

export const VIEWS = { heatmap, arcs, tokens, layer }
export const NAMES = Object.keys(VIEWS)
