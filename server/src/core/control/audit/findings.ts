/** The first problem found. Chain and seq are null if the problem does not concern a row. */
export interface FirstBad {
  chain: number | null
  seq: number | null
  problem: string
}

export const badFile = (problem: string): FirstBad => ({ chain: null, seq: null, problem })

export const badRow = (chain: number, seq: number, problem: string): FirstBad => ({
  chain,
  seq,
  problem: `Row ${seq} of chain ${chain} ${problem}`,
})
