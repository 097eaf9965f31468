/**
 * The kinds of mutations, the same on every plane. The kind decides the HTTP behaviour: method, status and whether
 * If-Match is honoured. Every mutation honours Idempotency-Key.
 *
 *   kind     method  success  If-Match
 *   create   POST    201      no
 *   edit     PATCH   200      yes
 *   rotate   POST    200      yes
 *   command  POST    200      no
 *   enqueue  POST    202      no
 *   delete   DELETE  204      yes
 */
export type Kind = 'create' | 'edit' | 'rotate' | 'command' | 'enqueue' | 'delete'

/** A resource that does not exist yet, or whose configuration stays as it is, has no version to compare. */
export type Unversioned = 'create' | 'command' | 'enqueue'

export const methodOfKind = {
  create: 'POST',
  edit: 'PATCH',
  rotate: 'POST',
  command: 'POST',
  enqueue: 'POST',
  delete: 'DELETE',
} as const

export const successOfKind = {
  create: 201,
  edit: 200,
  rotate: 200,
  command: 200,
  enqueue: 202,
  delete: 204,
} as const

export const comparesVersions = (kind: Kind): boolean =>
  kind !== 'create' && kind !== 'command' && kind !== 'enqueue'

/** What is acted upon in a mutation that compares `If-Match`. */
export type Versioned<Target> = Target & { version: number }
