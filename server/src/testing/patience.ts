/**
 * How long tests wait for what is to come: long, because a machine that others keep busy is no fault of ours. Where it
 * matters how soon something comes, that is measured.
 */
export const patienceMs = 90_000
