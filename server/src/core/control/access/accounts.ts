/** People's accounts: how they are made, and the changes that their users make to them. */
import type { Db, Tx } from '../../../platform/db/db.ts'
import { PosternError } from '../../../platform/errors.ts'
import { recordProjectActivity, recordUserActivity } from '../activity/activity.ts'
import { acceptInvitation, createInvitedUser, findInvitation } from '../members/invitations.ts'
import { memberActivity, memberView } from '../members/members.ts'
import { deleteChallenges, deleteResets, insertPassword } from './access.sql.ts'
import type { UserOperation } from './account-changes.ts'
import type { BetterAuthCalls, SignInResponse } from './better-auth-calls.ts'
import type { Browser } from './browser.ts'
import { deleteAccount } from './delete-account.ts'
import type { AppliedEmailChange } from './email-change.sql.ts'
import { confirmEmailChange, requestEmailChange, undoEmailChange } from './email-change.ts'
import { lockSession } from './password-race.sql.ts'
import { requestReset, resetPassword } from './password-reset.ts'
import type { SignIn } from './sign-in.ts'
import { entryOf, type SignInRecords } from './sign-in-records.ts'
import { notSignedIn } from './sign-in-refusals.ts'
import { confirmSignUp, requestSignUp, type SignUpLimits } from './sign-up.ts'

export interface AccountsOptions {
  db: Db
  calls: BetterAuthCalls
  records: SignInRecords
  signIn: SignIn
  /** Whether this installation sends system mail. */
  sendsMail: boolean
  /** Undefined if people cannot sign up. */
  signUp: SignUpLimits | undefined
}

export class Accounts {
  readonly #db: Db
  readonly #calls: BetterAuthCalls
  readonly #records: SignInRecords
  readonly #signIn: SignIn
  readonly #sendsMail: boolean
  readonly #signUp: SignUpLimits | undefined

  constructor({ db, calls, records, signIn, sendsMail, signUp }: AccountsOptions) {
    this.#db = db
    this.#calls = calls
    this.#records = records
    this.#signIn = signIn
    this.#sendsMail = sendsMail
    this.#signUp = sendsMail ? signUp : undefined
  }

  get acceptsSignUps(): boolean {
    return this.#signUp !== undefined
  }

  /** The response and the work are the same for every address. The worker emails a link, or that there is an account. */
  async signUp(
    browser: Browser,
    { email, name, password }: { email: string; name: string; password: string },
  ): Promise<SignInResponse<null>> {
    const limits = this.#signUpLimits()
    await requestSignUp(this.#db, { email, name }, browser.address, limits, () =>
      this.#calls.hash(browser.address, password),
    )
    return { body: null, cookies: [] }
  }

  /** The link proves access to the mailbox, and the password proves that the same person signed up. */
  async confirmSignUp(
    browser: Browser,
    { token, password }: { token: string; password: string },
  ): Promise<SignInResponse<null>> {
    this.#signUpLimits()
    const email = await confirmSignUp(
      this.#db,
      token,
      (hash, address) => this.#calls.verifyPassword(browser, address, { hash, password }),
      (tx, user) => this.#records.accountMade(tx, browser, 'auth.confirm-sign-up', user),
    )
    const { cookies } = await this.#signIn.withPassword(browser, email, password)
    return { body: null, cookies }
  }

  /** Revokes all of the user's other sessions. */
  async changePassword(
    browser: Browser,
    currentPassword: string,
    newPassword: string,
  ): Promise<SignInResponse<null>> {
    const { user } = await this.#signIn.withSecondFactor(browser)
    const { id, email } = user
    const passwords = { currentPassword, newPassword, revokeOtherSessions: true }
    const { cookies } = await this.#calls
      .callWithPassword('/change-password', browser, email, passwords, id)
      .catch(this.#records.recordFailure(browser, 'auth.change-password', user, 'password'))
    await this.#db.transaction(async (tx) => {
      await deleteChallenges(tx, id)
      await deleteResets(tx, id)
    })
    return { body: null, cookies }
  }

  /** What the bearer of the token is invited to. */
  async showInvitation(token: string) {
    const { expires_at, ...shown } = await this.#db.read((tx) => findInvitation(tx, token))
    return { body: { ...shown, expires_at: expires_at.toISOString() }, cookies: [] }
  }

  /** For an invited person without an account: creates the account, password and membership in one transaction. */
  async registerInvited(
    browser: Browser,
    { token, name, password }: { token: string; name: string; password: string },
  ) {
    // An invalid token is rejected before the password is hashed, because hashing takes 0.1 s.
    await this.#db.dryRun((tx) => createInvitedUser(tx, token, name))
    const hash = await this.#calls.hash(browser.address, password)
    const member = await this.#db.transaction(async (tx) => {
      const userId = await createInvitedUser(tx, token, name)
      await insertPassword(tx, userId, hash)
      const member = await acceptInvitation(tx, token, userId)
      const change = { resource: 'member', id: member.id, before: null, after: memberActivity(member) }
      const entry = entryOf(browser, 'auth.register-invited', { id: userId, email: member.email }, change)
      await recordProjectActivity(tx, member.project_id, entry)
      await recordUserActivity(tx, userId, entry)
      return member
    })
    const { cookies } = await this.#signIn.withPassword(browser, member.email, password)
    return { body: memberView(member), cookies }
  }

  /** The response is the same for every address. The worker emails the link if there is an account. */
  async forgotPassword({ address }: Browser, email: string): Promise<SignInResponse<null>> {
    if (!this.#sendsMail) {
      throw new PosternError(
        'not_found',
        'This installation does not send password reset links. Ask its operator to reset your password.',
      )
    }
    await requestReset(this.#db, email, address)
    return { body: null, cookies: [] }
  }

  /** Does not create a session: the sign-in that follows requires the second factor. */
  async resetPassword(browser: Browser, token: string, password: string): Promise<SignInResponse<null>> {
    await resetPassword(
      this.#db,
      token,
      () => this.#calls.hash(browser.address, password),
      (tx, userId) => this.#records.passwordReset(tx, browser, userId),
    )
    return { body: null, cookies: [] }
  }

  /** Emails a link to the new address. The response is the same whether or not the address has an account. */
  async changeEmail(
    browser: Browser,
    { email, password }: { email: string; password?: string },
  ): Promise<SignInResponse<null>> {
    const operation = 'auth.change-email'
    const { user, session } = await this.#signIn.reauthenticated(browser, operation, password)
    await this.#db.transaction(async (tx) => {
      await requireSession(tx, session.id)
      const wanted = await requestEmailChange(tx, user, email)
      const after = { email: wanted }
      const change = { resource: 'account', id: user.id, before: null, after }
      await recordUserActivity(tx, user.id, entryOf(browser, operation, user, change))
    })
    return { body: null, cookies: [] }
  }

  async confirmEmail(browser: Browser, token: string): Promise<SignInResponse<null>> {
    return this.#applyEmail(browser, 'auth.confirm-email', (tx) => confirmEmailChange(tx, token))
  }

  /** Ends all of the user's sessions. */
  async undoEmail(browser: Browser, token: string): Promise<SignInResponse<null>> {
    return this.#applyEmail(browser, 'auth.undo-email', async (tx) => {
      const { old_email, new_email, ...rest } = await undoEmailChange(tx, token)
      return { ...rest, old_email: new_email, new_email: old_email }
    })
  }

  /** The bearer of the link needs no session. */
  async #applyEmail(
    browser: Browser,
    operation: UserOperation,
    apply: (tx: Tx) => Promise<AppliedEmailChange>,
  ): Promise<SignInResponse<null>> {
    await this.#db.transaction(async (tx) => {
      const { user_id: id, old_email, new_email } = await apply(tx)
      const change = {
        ...{ resource: 'account', id },
        ...{ before: { email: old_email }, after: { email: new_email } },
      }
      await recordUserActivity(tx, id, entryOf(browser, operation, { id, email: new_email }, change))
    })
    return { body: null, cookies: [] }
  }

  async deleteAccount(browser: Browser, password: string | undefined): Promise<SignInResponse<null>> {
    const { user, session } = await this.#signIn.reauthenticated(browser, 'auth.delete-account', password)
    await this.#db.transaction(async (tx) => {
      await requireSession(tx, session.id)
      await deleteAccount(tx, browser, user)
    })
    // The browser forgets the cookie.
    const { cookies } = await this.#calls.call('/sign-out', browser, {})
    return { body: null, cookies }
  }

  #signUpLimits(): SignUpLimits {
    if (this.#signUp) return this.#signUp
    throw new PosternError(
      'not_found',
      'This installation does not accept sign-ups. Ask its operator for an account.',
    )
  }
}

/** Another request may have ended the session while the password was being hashed. */
async function requireSession(tx: Tx, sessionId: number): Promise<void> {
  if (!(await lockSession(tx, sessionId))) throw notSignedIn()
}
