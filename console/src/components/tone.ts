/** The colour of a state. */
export type Tone = 'good' | 'warn' | 'bad' | 'calm'
