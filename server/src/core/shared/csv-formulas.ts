/**
 * CSV (formula) injection: a spreadsheet evaluates a field that begins with `=`, `+`, `-`, `@`, a tab or a line break. An address
 * can begin with the first three. OWASP's advice is to put an apostrophe before such a field
 * (https://owasp.org/www-community/attacks/CSV_Injection). An address can also begin with an apostrophe, so a field with
 * apostrophes before such a character gets another one. An import removes it, and the list is exactly as it was.
 */

/** Also in full width, which spreadsheets with some East Asian languages evaluate. */
const evaluated = '[=+\\-@\\t\\r\\n\uff1d\uff0b\uff0d\uff20]'
const isFormula = new RegExp(`^'*${evaluated}`)
const isEscaped = new RegExp(`^'+${evaluated}`)

export const escapeFormula = (field: string): string => (isFormula.test(field) ? `'${field}` : field)

export const unescapeFormula = (field: string): string => (isEscaped.test(field) ? field.slice(1) : field)
