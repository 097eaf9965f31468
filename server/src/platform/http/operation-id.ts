import type { FastifyRequest } from 'fastify'

/** Undefined if the path has no operation. */
export const operationIdOf = ({ routeOptions }: FastifyRequest): string | undefined =>
  (routeOptions.schema as { operationId?: string } | undefined)?.operationId

/** For metrics. `other`: pages, files and machine-to-machine requests. `none`: unknown paths. */
export const countedOperationOf = (request: FastifyRequest): string =>
  request.is404 ? 'none' : (operationIdOf(request) ?? 'other')
