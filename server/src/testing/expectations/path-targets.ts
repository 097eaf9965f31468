/** The values of a path parameter, each with the result for an authorised caller. */
export type Verdict = 'found' | 'absent' | 'malformed'
export type Targets = Record<string, readonly [value: string | number, verdict: Verdict]>

export const neverExisted = 987_654_321

/** A well-formed id from long before the first message. */
export const neverSent = '00000000-0000-7000-8000-000000000000'

/** An identifier has one spelling; every other spelling is malformed. */
export const spellings = (id: number | string): Targets =>
  typeof id === 'number' ? numbers(id) : messageIds(id)

const numbers = (id: number): Targets => ({
  'of a missing resource': [neverExisted, 'absent'],
  '0': [0, 'absent'],
  '2^53-1': ['9007199254740991', 'absent'],
  '2^53': ['9007199254740992', 'malformed'],
  '2^63': ['9223372036854775808', 'malformed'],
  'with a sign': [`+${id}`, 'malformed'],
  'with a leading zero': [`0${id}`, 'malformed'],
  'in e-notation': [`${id}e0`, 'malformed'],
  'in hexadecimal': [`0x${id.toString(16)}`, 'malformed'],
  'after a space': [`%20${id}`, 'malformed'],
  'before a line feed': [`${id}%0A`, 'malformed'],
  'before a NUL': [`${id}%00`, 'malformed'],
  'in full-width digits': [encodeURIComponent(fullWidth(id)), 'malformed'],
  'as SQL': [`${id}%20or%201=1`, 'malformed'],
  'as a path': [`..%2F${id}`, 'malformed'],
  'that is 300 letters long': ['x'.repeat(300), 'malformed'],
})

/** UUIDs of version 7, in lower case. */
const messageIds = (id: string): Targets => ({
  'of a missing resource': [neverSent, 'absent'],
  'of a future time': ['ffffffff-ffff-7fff-bfff-ffffffffffff', 'absent'],
  nil: ['00000000-0000-0000-0000-000000000000', 'malformed'],
  'of all ones': ['ffffffff-ffff-ffff-ffff-ffffffffffff', 'malformed'],
  'of version 4': [`${id.slice(0, 14)}4${id.slice(15)}`, 'malformed'],
  'of another variant': [`${id.slice(0, 19)}c${id.slice(20)}`, 'malformed'],
  'in upper case': [`${id.slice(0, -1)}A`, 'malformed'],
  'without hyphens': [id.replaceAll('-', ''), 'malformed'],
  'in braces': [`%7B${id}%7D`, 'malformed'],
  'as a URN': [`urn:uuid:${id}`, 'malformed'],
  truncated: [id.slice(0, -1), 'malformed'],
  'with an extra digit': [`${id}0`, 'malformed'],
  'that is a number': [neverExisted, 'malformed'],
  '0': [0, 'malformed'],
  'after a space': [`%20${id}`, 'malformed'],
  'before a line feed': [`${id}%0A`, 'malformed'],
  'before a NUL': [`${id}%00`, 'malformed'],
  'as SQL': [`${id}'%20or%201=1`, 'malformed'],
  'as a path': [`..%2F${id}`, 'malformed'],
  'that is 300 letters long': ['x'.repeat(300), 'malformed'],
})

const fullWidth = (id: number): string =>
  String(id).replaceAll(/\d/g, (digit) => String.fromCodePoint(0xff10 + Number(digit)))

/** Paths that a proxy, or a proxy rule, may treat as administrative paths. */
export const planeSpellings = [
  '/v1/%61dmin/projects',
  '/v1/adm%69n/anything',
  'http://example.com/v1/admin/projects',
  '/V1/admin/projects',
  '/v1/ADMIN/projects',
  '/v1//admin/projects',
  '//v1/admin/projects',
  '/v1/./admin/projects',
  '/v1/auth/../admin/projects',
  '/v1/auth/..%2Fadmin/projects',
  '/v1%2Fadmin/projects',
  '/v1/admin%2Fprojects',
  '/v1/admin;x/projects',
  '/v1/admin\\projects',
  '/v1/admin%00/projects',
]
