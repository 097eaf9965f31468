/**
 * Imports of addresses: a CSV file (RFC 4180) with one address per line and, optionally, a reason in the second column. If
 * the first line is a header, it determines the columns. Each line is added, skipped or rejected separately, and the report
 * has one entry for each of them. Fields cannot contain line breaks.
 */
import Type, { type Static } from 'typebox'
import { addressText, readInternationalAddress } from '../../formats/address.ts'
import { PosternError } from '../../platform/errors.ts'
import { unescapeFormula } from './csv-formulas.ts'
import { nullable, oneOf } from './wire.ts'

export const maxImportLines = 10_000

/** About 400 bytes for each line. */
export const importBodyBytes = 4 * 1024 * 1024

const importResults = ['added', 'already_suppressed', 'duplicate', 'invalid'] as const
type ImportResult = (typeof importResults)[number]

export const ImportReport = Type.Object(
  {
    added: Type.Integer({ description: 'Lines whose address is added.' }),
    already_suppressed: Type.Integer({ description: 'Lines whose address was already suppressed.' }),
    duplicate: Type.Integer({ description: 'Lines that repeat an address of an earlier line.' }),
    invalid: Type.Integer({ description: 'Lines that are rejected.' }),
    lines: Type.Array(
      Type.Object(
        {
          line: Type.Integer({ description: 'The number of the line in the file, from 1.' }),
          address: Type.String({
            description:
              'The address in lower case; for an invalid line, the text as it was sent, shortened.',
          }),
          result: oneOf(importResults),
          message: nullable(Type.String({ description: 'Why the line is invalid.' })),
        },
        { additionalProperties: false },
      ),
      { description: 'Every line except the header and empty lines.' },
    ),
  },
  { title: 'ImportReport', additionalProperties: false },
)
export type Report = Static<typeof ImportReport>

export interface ImportedLine<Reason> {
  line: number
  address: string
  reason: Reason
}

export interface ImportedFile<Reason> {
  valid: ImportedLine<Reason>[]
  invalid: { line: number; text: string; fault: string }[]
}

/** `fault` completes a sentence that begins with the name of the column. */
export type ReadReason<Reason> = (text: string | null) => { reason: Reason } | { fault: string }

/** Returns the error instead of throwing it, because the file is read before the project is looked up. */
export function readImport<Reason>(
  csv: string,
  readReason: ReadReason<Reason>,
): ImportedFile<Reason> | { refusal: PosternError } {
  const file: ImportedFile<Reason> = { valid: [], invalid: [] }
  let columns: Columns | undefined
  let [isFirst, count] = [true, 0]
  for (const { line, text } of linesOf(csv.replace(/^\uFEFF/, ''))) {
    if (line > maxLinesRead) return { refusal: tooManyLines() }
    if (text.trim() === '') continue
    if (isFirst) {
      isFirst = false
      columns = columnsIn(headerOf(text))
      if (columns) continue
    }
    if (++count > maxImportLines) return { refusal: tooManyLines() }
    const read = readLine(text, columns, readReason)
    if ('fault' in read) file.invalid.push({ line, text: shortened(read.text), fault: read.fault })
    else file.valid.push({ line, ...read })
  }
  return count === 0 ? { refusal: refused('contains no addresses') } : file
}

/** Empty lines included. */
const maxLinesRead = 2 * maxImportLines
/** An address, a reason, and other columns of an export. */
const maxLineCharacters = 4_000
/** The columns that a header can name. */
const maxColumns = 50

/** One by one, because the file can consist of line breaks. */
function* linesOf(csv: string): Generator<{ line: number; text: string }> {
  const lineBreak = /\r\n|\n|\r/g
  for (let [line, from] = [1, 0]; from <= csv.length; line++) {
    const end = lineBreak.exec(csv)
    yield { line, text: csv.slice(from, end?.index) }
    from = end ? lineBreak.lastIndex : csv.length + 1
  }
}

const refused = (complaint: string) => new PosternError('validation_failed', `"csv" ${complaint}.`)
const tooManyLines = () =>
  refused(`has more than ${maxImportLines} addresses, or more than ${maxLinesRead} lines. Split the file`)

const headerOf = (text: string): string[] | undefined =>
  text.length > maxLineCharacters ? undefined : fieldsOf(text, maxColumns)

interface Columns {
  address: number
  reason: number | undefined
}

/** Undefined if the line is not a header. */
function columnsIn(fields: readonly string[] | undefined): Columns | undefined {
  const names = fields?.map((field) => field.toLowerCase()) ?? []
  const address = names.findIndex((name) => /^(e-?mail( |_)?)?(address)?$/.test(name) && name !== '')
  const reason = names.indexOf('reason')
  return address < 0 ? undefined : { address, reason: reason < 0 ? undefined : reason }
}

function readLine<Reason>(
  text: string,
  columns: Columns | undefined,
  readReason: ReadReason<Reason>,
): { address: string; reason: Reason } | { text: string; fault: string } {
  if (text.length > maxLineCharacters)
    return { text, fault: `The line is longer than ${maxLineCharacters} characters.` }
  const fields = fieldsOf(text, columns ? 1 + Math.max(columns.address, columns.reason ?? 0) : 3)
  if (!fields) return { text, fault: 'The line has a quotation mark in the wrong place.' }
  if (!columns && fields.length > 2)
    return { text, fault: 'The line has more than two columns, and the file has no header.' }
  const given = unescapeFormula(fields[columns?.address ?? 0] ?? '')
  const address = readInternationalAddress(given)
  if ('fault' in address) return { text: given, fault: `"address" ${address.fault}.` }
  const reasonAt = columns ? columns.reason : 1
  const reason = reasonAt === undefined ? '' : (fields[reasonAt] ?? '')
  const read = readReason(reason === '' ? null : reason)
  if ('fault' in read) return { text: given, fault: `"reason" ${read.fault}.` }
  return { address: addressText(address), reason: read.reason }
}

/**
 * The first fields of a line, trimmed: no more than are needed. Undefined if a quotation mark is not where RFC 4180 §2 allows
 * it.
 */
function fieldsOf(text: string, atMost: number): string[] | undefined {
  if (!text.includes('"')) return text.split(',', atMost).map((field) => field.trim())
  const fields: string[] = []
  // Each field is quoted, with "" for a quotation mark, or has none. Matching takes linear time.
  const field = /(?:\s*"((?:[^"]|"")*)"\s*|([^",]*))(,|$)/y
  for (;;) {
    const match = field.exec(text)
    if (!match) return undefined
    fields.push((match[1]?.replaceAll('""', '"') ?? match[2] ?? '').trim())
    if (match[3] === '' || fields.length === atMost) return fields
  }
}

const shownCharacters = 320

const shortened = (text: string): string =>
  text.length > shownCharacters ? `${text.slice(0, shownCharacters - 1).toWellFormed()}…` : text

/** What the list has of the valid lines, in their order. `address` is in lower case. */
export interface ListedAddress {
  address: string
  is_suppressed: boolean
}

export function importReport<Reason>(
  { valid, invalid }: ImportedFile<Reason>,
  listed: readonly ListedAddress[],
): { report: Report; added: { address: string; reason: Reason }[] } {
  const seen = new Set<string>()
  const added: { address: string; reason: Reason }[] = []
  const lines: Report['lines'] = valid.map(({ line, reason }, index) => {
    const found = listed[index]
    if (!found) throw new Error('a line was not looked up')
    const { address, is_suppressed } = found
    const result = is_suppressed ? 'already_suppressed' : seen.has(address) ? 'duplicate' : 'added'
    seen.add(address)
    if (result === 'added') added.push({ address, reason })
    return { line, address, result, message: null }
  })
  for (const { line, text, fault } of invalid)
    lines.push({ line, address: text, result: 'invalid', message: fault })
  lines.sort((one, other) => one.line - other.line)
  const count = (wanted: ImportResult) => lines.filter(({ result }) => result === wanted).length
  return {
    report: {
      added: added.length,
      already_suppressed: count('already_suppressed'),
      duplicate: count('duplicate'),
      invalid: invalid.length,
      lines,
    },
    added,
  }
}

/** The field of the request. */
export const ImportedCsv = Type.String({
  minLength: 1,
  maxLength: importBodyBytes,
  description: `A CSV file with one address per line, at most ${maxImportLines.toLocaleString('en')} lines.`,
  examples: ['someone@example.com\nother@example.com'],
})
