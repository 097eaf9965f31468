import type { Statement } from './statements.ts'

/** The same statements for pgbench: what the API sent, with variables where each transaction needs its own value. */
export interface PgbenchScript {
  text: string
  /** How many of the statements the API has prepared once per connection, instead of planned each time. */
  preparedByApi: number
  /** Values that stay the same in every transaction, one variable for each. */
  constants: Record<string, string>
}

export interface Meanings {
  /** What a variable was in each of the captures; a parameter that was the same in all of them is that variable. */
  variables: Record<string, string[]>
  /** The same for what pgbench cannot compute itself: written in SQL instead. */
  expressions?: { sql: string; was: string[] }[]
  /** Before the first statement. */
  preamble: string
  /** Behind the statements that match: what to take from the answer. Ends the statement, as `;` does. */
  answers: { of: RegExp; take: string }[]
}

/** `captures` are the statements of several equal requests; they differ in their parameters alone. */
export function pgbenchScript(captures: Statement[][], meanings: Meanings): PgbenchScript {
  const [first = [], ...others] = captures
  const texts = (statements: Statement[]): string => statements.map(({ text }) => text).join('\n')
  if (first.length === 0) throw new Error('No statement was captured.')
  if (others.some((other) => texts(other) !== texts(first))) {
    throw new Error(
      `The API did not send the same statements each time:\n${captures.map(texts).join('\n\n')}`,
    )
  }
  const constants: Record<string, string> = {}
  const expression = (statement: number, parameter: number): string => {
    const values = captures.map((capture) => capture[statement]?.values[parameter] ?? null)
    const isEqual = (was: string[]): boolean => was.every((value, index) => value === values[index])
    const known = Object.entries(meanings.variables).find(([, was]) => isEqual(was))
    if (known) return `:${known[0]}`
    const expressed = meanings.expressions?.find(({ was }) => isEqual(was))
    if (expressed) return expressed.sql
    const constant = values.at(-1) ?? null
    // pgbench cannot send null.
    if (constant === null) return 'null'
    const name = `constant_${statement + 1}_${parameter + 1}`
    constants[name] = constant
    return `:${name}`
  }
  const commands = first.map(({ text }, statement) => {
    const filled = withoutColons(text).replace(/\$(\d+)/g, (_, number) =>
      expression(statement, Number(number) - 1),
    )
    const answer = meanings.answers.find(({ of }) => of.test(text))
    return answer ? `${filled}\n${answer.take}` : `${filled};`
  })
  const preparedByApi = first.filter(({ isNamed }) => isNamed).length
  return { preparedByApi, text: `${meanings.preamble}\n${commands.join('\n')}\n`, constants }
}

/** pgbench takes `'HH24:MI'` for a string with a variable in it. */
const withoutColons = (text: string): string =>
  text.replace(/'(?:[^']|'')*'/g, (literal) =>
    /:\w/.test(literal) ? `E${literal.replaceAll('\\', '\\\\').replaceAll(':', '\\x3a')}` : literal,
  )
