import type { Tx } from '../../../platform/db/db.ts'
import { composeAccountChanged } from '../access/account-changes.ts'
import { composeEmailChange, composeEmailChanged } from '../access/email-change.ts'
import { composePasswordReset } from '../access/password-reset.ts'
import { composeSignUp } from '../access/sign-up.ts'
import { composeDomainNotice } from '../domains/dns-notices.ts'
import { composeDisabledNotice } from '../endpoints/disabled-notices.ts'
import { composeInterventionMail } from '../interventions/mails.ts'
import { composeInvitation } from '../members/invitations.ts'
import { composeConfirmation } from '../routes/forward-confirmations.ts'
import type { AddressedMail, ComposeDeps, QueuedSystemMail } from './queued-mail.ts'
import type { Kind } from './system-mails.sql.ts'

/**
 * Reads the subject and composes the mail. Stores the hash of a token before the mail is sent, so that the link is valid when
 * it arrives. Null: there is nothing to tell any more.
 */
type Compose = (tx: Tx, mail: QueuedSystemMail, deps: ComposeDeps) => Promise<AddressedMail | null>

export const composers: Record<Kind, Compose> = {
  invitation: composeInvitation,
  password_reset: composePasswordReset,
  sign_up: composeSignUp,
  email_change: composeEmailChange,
  email_changed: composeEmailChanged,
  account_changed: composeAccountChanged,
  forward_confirmation: composeConfirmation,
  endpoint_disabled: composeDisabledNotice,
  domain_failing: composeDomainNotice,
  intervention: composeInterventionMail,
}
