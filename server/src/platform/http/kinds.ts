/**
 * The kinds of mutations, the same on every plane. The kind determines the HTTP behavior: method, status and whether
 * If-Match is honored. Every mutation honors Idempotency-Key.
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

/** Kinds without If-Match: the resource does not exist yet, or its configuration does not change. */
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

/** The target of a mutation that honors If-Match. */
export type Versioned<Target> = Target & { version: number }
