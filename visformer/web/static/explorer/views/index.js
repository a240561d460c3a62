/**
 * The views of the explorer by name, in the order of their buttons. To add one, declare it in a file of its own and list
 * it here and in VIEWS of web/selection.py, which says how a file shows it; its texts view_NAME and view_NAME_about are in
 * words.py.
 * The first is the one that the explorer begins with.
 *
 * A view declares
 *   needs: the parts of the scene that it draws, see AttentionView.scene: "matrix", "thumb", "series" (each head), "grid"
 *   label: key of its text for screen readers; by default view_NAME_about
 *   chooses: whether a word is chosen while the visitor has chosen nothing
 *   tiled: the declaration of the view that takes its place where the text is long (parts.js); byToken: whether its rows
 *     and columns are tokens, while those of the other views are then sentences, or the tokens of two of them
 *   isText: whether it shows both sentences, which then stand nowhere else
 *   mount(parent, host): returns an object with `element` and, if it draws on a single canvas, `canvas`, which takes the
 *     keyboard focus; host: {hover(cell), lock(cell, add), hoverHead(place), openHead(place, add), zoomed(),
 *     aside}; aside: the element beside the picture for what a view has to list
 * The mounted object has show(scene) and may have point(scene), called instead if only the cells in focus have changed;
 * reveal(cell), scrolls it into view; keys(), maps keys to actions; zoom(direction) and zoomed, for the toolbar; leave(),
 * called while another view is shown.
 */

import { tokens } from "./tokens.js"
import { heatmap } from "./heatmap.js"
import { arcs } from "./arcs.js"
import { layer } from "./layer.js"

export const VIEWS = { tokens, heatmap, arcs, layer }
export const NAMES = Object.keys(VIEWS)

/** The view in which a thumbnail is enlarged. */
export const LARGE = "heatmap"
