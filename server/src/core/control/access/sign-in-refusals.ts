import { PosternError } from '../../../platform/errors.ts'

/** Better Auth's error responses as errors of our closed list. */

const wrongCode = 'The code is wrong or has been used up. Try the next one, or sign in again.'

/** Better Auth's codes in the words of our list. What is not here is not the caller's doing. */
const refusals: Record<
  string,
  [code: 'unauthenticated' | 'validation_failed' | 'already_exists', message: string]
> = {
  INVALID_EMAIL_OR_PASSWORD: ['unauthenticated', 'The email address or the password is wrong.'],
  INVALID_EMAIL: ['validation_failed', '"email" is not an email address.'],
  INVALID_PASSWORD: ['unauthenticated', 'The password is wrong.'],
  PASSWORD_TOO_SHORT: ['validation_failed', 'The new password must have at least 12 characters.'],
  PASSWORD_TOO_LONG: ['validation_failed', 'The new password must have at most 128 characters.'],
  INVALID_CODE: ['unauthenticated', wrongCode],
  INVALID_BACKUP_CODE: ['unauthenticated', wrongCode],
  TOO_MANY_ATTEMPTS_REQUEST_NEW_CODE: ['unauthenticated', 'Too many wrong codes. Sign in again.'],
  INVALID_TWO_FACTOR_COOKIE: ['unauthenticated', 'Sign in with email and password first.'],
  TOTP_NOT_ENABLED: ['unauthenticated', 'No second factor is set up. Set one up first.'],
  TOTP_ALREADY_ENABLED: ['already_exists', 'A second factor is already set up.'],
  BACKUP_CODES_NOT_ENABLED: ['unauthenticated', 'No second factor is set up. Set one up first.'],
}

export const alreadySignedIn = (): PosternError =>
  new PosternError('already_exists', 'You are signed in already. Sign out before you give a code again.')

export const notSignedIn = (): PosternError =>
  new PosternError('unauthenticated', 'Nobody is signed in here. Sign in first.')

export function refusalOf(response: Response, answer: Record<string, unknown>): PosternError {
  if (response.status === 429) {
    const retryAfter = Number(response.headers.get('x-retry-after') ?? 900)
    return new PosternError('rate_limited', 'Too many attempts. Wait before you try again.', {
      retryAfterSeconds: retryAfter,
    })
  }
  const code = typeof answer['code'] === 'string' ? answer['code'] : ''
  // Better Auth keeps the cause to itself; the only thing that it does there is to ask the database.
  if (code === 'FAILED_TO_GET_SESSION') {
    return new PosternError(
      'unavailable',
      'The session cannot be looked up at the moment. Try again shortly.',
      {
        retryAfterSeconds: 1,
      },
    )
  }
  const [ours, message] = refusals[code] ?? []
  if (ours === undefined || message === undefined) {
    if (response.status === 401) return notSignedIn()
    return new PosternError(
      'internal_error',
      `Better Auth answered ${response.status} ${JSON.stringify(answer)}`,
    )
  }
  return new PosternError(ours, message)
}
