import type { ReactNode } from 'react'
import type { Answer, AnswerOf, BodyOf, MutationId, PathOf } from '../../api/client.ts'

/**
 * One change by an administrator, from the question to the answer. Every mutation of the console goes through the same
 * dialog, which is given one of these:
 *
 *   fields (where there are any) → what will change, told by the server → the reason → the act → its result
 *
 * Nothing is done before the server has told what would happen. Whoever was overtaken by somebody else (412) is shown
 * what changed meanwhile and goes on from there, with the fields that they did not touch as they are now.
 */
export interface Act<Id extends MutationId, R, Form extends object> {
  operation: Id
  path: PathOf<Id>
  /** "Lock Acme". */
  title: string
  /** What the button does, in a verb: "Lock project". */
  button: string
  isDangerous?: boolean
  /** What is changed, as it was seen, and how to see it again. What is made anew has none. */
  base: Base<R>
  form: (seen: R) => Form
  /** Where there are several, they are gone through one by one. */
  steps?: Step<R, Form>[]
  /** What is sent, without the reason. Undefined as long as something is missing. */
  body: (form: Form, seen: R) => Omit<BodyOf<Id>, 'reason'> | undefined
  /** Shown after success, to be read before the dialog is closed. A secret is shown in any case. */
  result?: (answer: AnswerOf<Id>) => ReactNode
  done?: (answer: AnswerOf<Id>) => void
}

export interface Base<R> {
  seen: Answer<R>
  look?: () => Promise<Answer<R>>
  /** What of it is compared when somebody else was faster. All of it, where this is not said. */
  compare?: (seen: R) => unknown
}

export interface Step<R, Form> {
  title: string
  fields: (props: { form: Form; set: (part: Partial<Form>) => void; seen: R }) => ReactNode
}

/** For what is made anew. */
export const nothing: Base<undefined> = { seen: { data: undefined, version: undefined } }

/** For acts of which nothing is to be filled in but the reason. */
export const nothingToFillIn = { form: () => ({}), body: () => ({}) }
