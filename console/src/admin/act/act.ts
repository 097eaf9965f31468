import type { ReactNode } from 'react'
import type { Base } from '../../act/base.ts'
import type { AnswerOf, BodyOf, PathOf } from '../../api/client.ts'
import type { MutationId } from './mutation.ts'

/**
 * A change made by an administrator. Every mutation in the console goes through the same dialog:
 *
 *   fields (if there are any) → the server's preview → the reason → the mutation → its result
 *
 * Nothing is changed before the server has returned a preview. On an edit conflict (412) the user sees what has changed
 * in the meantime and continues with their edits; fields they did not edit take the current values.
 */
export interface Act<Id extends MutationId, R, Form extends object> {
  /** May depend on the form: a lock with a public note is another operation than one without. */
  operation: Id | ((form: Form, loaded: R) => Id)
  path: PathOf<Id>
  /** "Lock Acme". */
  title: string
  /** The label of the submit button, a verb: "Lock project". */
  button: string | ((form: Form, loaded: R) => string)
  /** The toast after success: "Project locked". */
  success: string
  isDangerous?: boolean | ((form: Form, loaded: R) => boolean)
  /** Whether the console asks for a reason that the server does not require. */
  isReasonRequired?: (form: Form, loaded: R) => boolean
  /** The resource as it was loaded, and how to load it again. `nothing` for a new resource. */
  base: Base<R>
  form: (loaded: R) => Form
  /** Several steps are shown one by one. */
  steps?: Step<R, Form>[]
  /** Whether the preview is expensive, so that it is not loaded after each edit. Only for acts with a page of their own. */
  isPreviewedOnRequest?: boolean
  previewTimeoutMs?: number
  /** Whether the reason gets the focus although there are fields, because all of them are optional. */
  focusesReason?: boolean
  /** The request body without the reason. Undefined while a field is missing. */
  body: (form: Form, loaded: R) => WithoutReason<BodyOf<Id>> | undefined
  /** Shown after success, before the dialog closes. A secret is always shown. */
  result?: (answer: AnswerOf<Id>) => ReactNode
  done?: (answer: AnswerOf<Id>) => void
}

/** Also of a union of bodies. */
type WithoutReason<Body> = Body extends unknown ? Omit<Body, 'reason'> : never

export interface Step<R, Form> {
  title: string
  fields: (props: { form: Form; set: (part: Partial<Form>) => void; loaded: R }) => ReactNode
}

/** For acts without fields other than the reason. */
export const nothingToFillIn = { form: () => ({}), body: () => ({}) }
