/** What a path parameter can hold, and what becomes of it for somebody who may ask. */
export type Verdict = 'found' | 'absent' | 'malformed'
export type Targets = Record<string, readonly [value: string | number, verdict: Verdict]>

export const neverExisted = 987_654_321

/** An identifier has one spelling; in any other it is none, whatever it stands for. */
export const spellings = (id: number): Targets => ({
  'of nothing': [neverExisted, 'absent'],
  '0': [0, 'absent'],
  '2^53-1': ['9007199254740991', 'absent'],
  '2^53': ['9007199254740992', 'malformed'],
  '2^63': ['9223372036854775808', 'malformed'],
  'with a sign': [`+${id}`, 'malformed'],
  'with a zero before it': [`0${id}`, 'malformed'],
  'in e-notation': [`${id}e0`, 'malformed'],
  'in hexadecimal': [`0x${id.toString(16)}`, 'malformed'],
  'behind a space': [`%20${id}`, 'malformed'],
  'before a line feed': [`${id}%0A`, 'malformed'],
  'before a NUL': [`${id}%00`, 'malformed'],
  'in full-width digits': [encodeURIComponent(fullWidth(id)), 'malformed'],
  'as SQL': [`${id}%20or%201=1`, 'malformed'],
  'as a path': [`..%2F${id}`, 'malformed'],
  'that is 300 letters long': ['x'.repeat(300), 'malformed'],
})

const fullWidth = (id: number): string =>
  String(id).replaceAll(/\d/g, (digit) => String.fromCodePoint(0xff10 + Number(digit)))

/** Addresses that a proxy, or whoever wrote a rule for one, may take for the administrative plane's. */
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
