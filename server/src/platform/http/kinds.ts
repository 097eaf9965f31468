/**
 * The kinds of mutations, the same on every plane. The kind decides method, status and which headers are honoured:
 *
 *   kind     method  success  If-Match  Idempotency-Key
 *   create   POST    201      no        yes
 *   edit     PATCH   200      yes       no
 *   rotate   POST    200      yes       yes
 *   ask      POST    200      no        yes
 *   enqueue  POST    202      no        yes
 *   delete   DELETE  204      yes       no
 */
export type Kind = 'create' | 'edit' | 'rotate' | 'ask' | 'enqueue' | 'delete'

/** A resource that does not exist yet, or whose configuration stays as it is, has no version to compare. */
export type Unversioned = 'create' | 'ask' | 'enqueue'

export const methodOfKind = {
  create: 'POST',
  edit: 'PATCH',
  rotate: 'POST',
  ask: 'POST',
  enqueue: 'POST',
  delete: 'DELETE',
} as const

export const successOfKind = {
  create: 201,
  edit: 200,
  rotate: 200,
  ask: 200,
  enqueue: 202,
  delete: 204,
} as const

export const comparesVersions = (kind: Kind): boolean =>
  kind !== 'create' && kind !== 'ask' && kind !== 'enqueue'

/** What is acted upon in a mutation that compares `If-Match`. */
export type Versioned<Target> = Target & { version: number }
