/** The event with which a presentation has the bar of an open lesson go on (detail: 1) or back (-1). */
export const TURN = "visformer-turn"
