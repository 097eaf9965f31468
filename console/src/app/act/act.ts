import type { ReactNode } from 'react'
import type { Base } from '../../act/base.ts'
import type { AnswerOf, BodyOf, OperationId, PathOf } from '../../api/client.ts'

/**
 * A change made by a customer. Every mutation in the app that needs fields or a confirmation goes through one dialog:
 *
 *   fields or a sentence about the consequences → the mutation → its result
 *
 * On an edit conflict (412) the user continues with their edits; fields they did not edit take the current values.
 */
export interface Act<Id extends OperationId, R, Form extends object> {
  operation: Id
  path: PathOf<Id>
  /** "Delete Web shop". */
  title: string
  /** The label of the submit button, a verb: "Delete API key". */
  button: string
  /** The toast after success: "API key deleted". */
  success: string
  isDangerous?: boolean
  /** The resource as it was loaded, and how to load it again. `nothing` for a new resource. */
  base: Base<R>
  form: (loaded: R) => Form
  fields?: (props: { form: Form; set: (part: Partial<Form>) => void; loaded: R }) => ReactNode
  /** What the change does, where the fields do not say it. */
  consequences?: ReactNode
  /** Undefined while a field is missing. */
  body: (form: Form, loaded: R) => BodyOf<Id> | undefined
  /** Shown after success, before the dialog closes; below the secret, if there is one. */
  result?: (answer: AnswerOf<Id>) => ReactNode
  done?: (answer: AnswerOf<Id>) => void
}

/** For acts without fields. */
export const nothingToFillIn = { form: () => ({}), body: () => ({}) }
