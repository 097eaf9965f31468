/** Operations that require one of several parameters. */
const alternatives: Record<string, string> = { '/admin/messages': 'recipient=someone@example.net' }

/** The required query parameters, each with its example. */
export function neededQuery(operation: { path: string } | undefined): string {
  const parameters = operation && 'query' in operation ? operation.query : {}
  const query = new URLSearchParams(alternatives[operation?.path ?? ''])
  for (const [name, schema] of Object.entries(parameters as Record<string, { examples?: string[] }>)) {
    if (!('~optional' in schema)) query.set(name, schema.examples?.[0] ?? '')
  }
  return withQuery('', query.toString())
}

/** Appends to the query of a path. */
export const withQuery = (path: string, more: string): string => {
  const query = more.replace(/^\?/, '')
  return query === '' ? path : `${path}${path.includes('?') ? '&' : '?'}${query}`
}
