import { hkdfSync } from 'node:crypto'

/** The key for the tokens in mail about accounts. Derived from the newest session secret. */
export const accountKeyOf = ([newest]: readonly { value: string }[]): Buffer =>
  Buffer.from(hkdfSync('sha256', newest?.value ?? '', '', 'postern account mail', 32))
