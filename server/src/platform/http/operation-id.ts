import type { FastifyRequest } from 'fastify'

/** What a request is for; undefined at an address where there is no operation. */
export const operationIdOf = ({ routeOptions }: FastifyRequest): string | undefined =>
  (routeOptions.schema as { operationId?: string } | undefined)?.operationId

/** The same for who counts. `other`: a page, a file, or what one machine says to another. `none`: nothing is there. */
export const countedOperationOf = (request: FastifyRequest): string =>
  request.is404 ? 'none' : (operationIdOf(request) ?? 'other')
