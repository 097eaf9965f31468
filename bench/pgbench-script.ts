import type { Statement } from './statements.ts'

/** The API's statements as a pgbench script, with variables for values that differ between transactions. */
export interface PgbenchScript {
  text: string
  /** The number of statements that the API prepares once per connection. */
  preparedByApi: number
  /** Values that are the same in every transaction, each with its variable. */
  constants: Record<string, string>
}

export interface Meanings {
  /**
   * The value of each variable in each capture. A parameter that has a variable's value in every capture is replaced
   * with that variable.
   */
  variables: Record<string, string[]>
  /** The same for values that pgbench cannot compute. They are replaced with SQL expressions. */
  expressions?: { sql: string; was: string[] }[]
  /** Inserted before the first statement. */
  preamble: string
  /** Inserted after matching statements to read values from the response. Like `;`, it terminates the statement. */
  answers: { of: RegExp; take: string }[]
}

/** `captures` contains the statements of several similar requests. The captures differ only in their parameters. */
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

/** pgbench would interpret `:MI` in `'HH24:MI'` as a variable. */
const withoutColons = (text: string): string =>
  text.replace(/'(?:[^']|'')*'/g, (literal) =>
    /:\w/.test(literal) ? `E${literal.replaceAll('\\', '\\\\').replaceAll(':', '\\x3a')}` : literal,
  )
