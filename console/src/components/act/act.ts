import type { ReactNode } from 'react'
import type { Answer, AnswerOf, BodyOf, MutationId, PathOf } from '../../api/client.ts'

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

/** A property of an act that may depend on the form. */
export const resolve = <T, Form, R>(
  property: T | ((form: Form, loaded: R) => T),
  form: Form,
  loaded: R,
): T => (property instanceof Function ? property(form, loaded) : property)

export interface Base<R> {
  loaded: Answer<R>
  refetch?: () => Promise<Answer<R>>
  /** The part of the resource that is compared on an edit conflict. By default, the whole resource. */
  compare?: (loaded: R) => unknown
}

export interface Step<R, Form> {
  title: string
  fields: (props: { form: Form; set: (part: Partial<Form>) => void; loaded: R }) => ReactNode
}

/** For new resources. */
export const nothing: Base<undefined> = { loaded: { data: undefined, version: undefined } }

/** For acts without fields other than the reason. */
export const nothingToFillIn = { form: () => ({}), body: () => ({}) }
