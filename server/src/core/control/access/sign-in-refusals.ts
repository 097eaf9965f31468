/** Translates Better Auth's error responses into Postern's error codes. */
import { PosternError } from '../../../platform/errors.ts'

const wrongCode = 'The code is wrong or was already used. Enter the next code, or sign in again.'

const unknownPasskey = 'This passkey is unknown or could not be verified. Use another method.'

/** Maps Better Auth's codes to Postern's. An error with any other code is not the caller's fault. */
const refusals: Record<
  string,
  [code: 'unauthenticated' | 'validation_failed' | 'already_exists', message: string]
> = {
  INVALID_EMAIL_OR_PASSWORD: ['unauthenticated', 'The email address or the password is wrong.'],
  INVALID_EMAIL: ['validation_failed', '"email" must be an email address.'],
  INVALID_PASSWORD: ['unauthenticated', 'The password is wrong.'],
  PASSWORD_TOO_SHORT: ['validation_failed', 'The new password must have at least 12 characters.'],
  PASSWORD_TOO_LONG: ['validation_failed', 'The new password must have at most 128 characters.'],
  INVALID_CODE: ['unauthenticated', wrongCode],
  INVALID_BACKUP_CODE: ['unauthenticated', wrongCode],
  TOO_MANY_ATTEMPTS_REQUEST_NEW_CODE: ['unauthenticated', 'Too many wrong codes. Sign in again.'],
  INVALID_TWO_FACTOR_COOKIE: ['unauthenticated', 'Sign in with email and password first.'],
  TOTP_NOT_ENABLED: ['unauthenticated', 'No second factor is set up.'],
  TOTP_ALREADY_ENABLED: ['already_exists', 'A second factor is already set up.'],
  CHALLENGE_NOT_FOUND: ['unauthenticated', 'The request took too long. Try again.'],
  PASSKEY_NOT_FOUND: ['unauthenticated', unknownPasskey],
  AUTHENTICATION_FAILED: ['unauthenticated', unknownPasskey],
  FAILED_TO_VERIFY_REGISTRATION: ['unauthenticated', 'The passkey could not be verified. Try again.'],
  YOU_ARE_NOT_ALLOWED_TO_REGISTER_THIS_PASSKEY: [
    'unauthenticated',
    'The request is of another user. Try again.',
  ],
  BACKUP_CODES_NOT_ENABLED: ['unauthenticated', 'No second factor is set up.'],
}

export const alreadySignedIn = (): PosternError =>
  new PosternError('already_exists', 'You are already signed in. Sign out before you enter another code.')

export const notSignedIn = (): PosternError =>
  new PosternError('unauthenticated', 'You are not signed in. Sign in first.')

export function refusalOf(response: Response, body: Record<string, unknown>): PosternError {
  if (response.status === 429) {
    const retryAfter = Number(response.headers.get('x-retry-after') ?? 900)
    return new PosternError('rate_limited', 'Too many attempts. Try again later.', {
      retryAfterSeconds: retryAfter,
    })
  }
  const code = typeof body['code'] === 'string' ? body['code'] : ''
  // Better Auth does not expose the cause. At this point it only queries the database.
  if (code === 'FAILED_TO_GET_SESSION') {
    return new PosternError('unavailable', 'Sign-in is temporarily unavailable. Try again later.', {
      retryAfterSeconds: 1,
    })
  }
  const [ours, message] = refusals[code] ?? []
  if (ours === undefined || message === undefined) {
    if (response.status === 401) return notSignedIn()
    return new PosternError(
      'internal_error',
      `Better Auth responded with ${response.status} ${JSON.stringify(body)}`,
    )
  }
  return new PosternError(ours, message)
}
