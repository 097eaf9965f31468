import type { Answer } from '../api/client.ts'

/** The resource that a change is based on: as it was loaded, and how to load it again. */
export interface Base<R> {
  loaded: Answer<R>
  refetch?: () => Promise<Answer<R>>
  /** The part of the resource that is compared on an edit conflict. By default, the whole resource. */
  compare?: (loaded: R) => unknown
}

/** For new resources. */
export const nothing: Base<undefined> = { loaded: { data: undefined, version: undefined } }

/** A property of an act that may depend on the form. */
export const resolve = <T, Form, R>(
  property: T | ((form: Form, loaded: R) => T),
  form: Form,
  loaded: R,
): T => (property instanceof Function ? property(form, loaded) : property)
