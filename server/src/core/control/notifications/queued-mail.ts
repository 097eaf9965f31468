/** What the causes of system mail use: a cause adds a mail in its transaction, and composes it when it is sent. */
import type { AddressedMail } from './system-mail.ts'

export type { Block } from './render.ts'
export { addSystemMail, addSystemMailUntil, noticeDays } from './system-mails.sql.ts'
export type { AddressedMail }

/** What a mail is composed from. */
export interface QueuedSystemMail {
  /** Tokens are derived from it, so a mail that is sent again has the same token. */
  id: string
  /** The id of what the mail is about. */
  subject_id: number
}

export interface ComposeDeps {
  publicUrl: URL
  invitationKey: Buffer
  resetKey: Buffer
  /** For the links of sign-ups. */
  accountKey: Buffer
  forwardConfirmationKey: Buffer
}
