import swagger from '@fastify/swagger'
import type { FastifyRequest } from 'fastify'
import { networkOf, type RateLimit } from '../platform/http/rate-limit.ts'
import type { HttpServer } from '../platform/http/server.ts'
import { NamedSchemas, type Schema } from './named-schemas.ts'
import { conventions, tags } from './openapi-conventions.ts'
import { webhooks, webhookTag } from './webhook-events.ts'

/**
 * The OpenAPI document, generated from the schemas that validate requests, so it always matches the behaviour.
 *
 * openapi/postern.v1.json is the committed document; `npm run generate` writes it. It does not depend on the
 * configuration, so every installation serves the same document.
 */
export interface OpenapiDocument {
  openapi: string
  info: object
  servers: object[]
  tags: { name: string }[]
  paths: Record<string, Record<string, Operation>>
  webhooks: Record<string, object>
  components: Record<string, object>
}

export interface Operation {
  operationId: string | undefined
  tags: string[] | undefined
  summary: string | undefined
  description: string | undefined
  security: object[] | undefined
  parameters: { in: string; name: string; schema: Schema | undefined }[] | undefined
  requestBody: { required?: boolean; content: Content | undefined } | undefined
  responses: Record<
    string,
    { description: string; headers: Content | undefined; content: Content | undefined }
  >
  'x-body-optional'?: true
}

type Content = Record<string, { schema: Schema | undefined }>

/**
 * Serves the document at /openapi.json; its readable form is part of the documentation (site/reference). Must be called
 * before the routes are registered: only routes registered afterwards are in the document.
 */
export function registerOpenapi(app: HttpServer, addressLimit: RateLimit): void {
  // Called directly and not registered: a registered plugin runs when the server starts, too late to see the routes.
  swagger(
    app,
    {
      openapi: {
        openapi: '3.1.0',
        info: {
          title: 'Postern',
          version: 'v1',
          summary: 'A self-hosted, multi-tenant email sending service.',
          description: conventions,
          license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
        },
        servers: [{ url: '/', description: 'This server.' }],
        components: { securitySchemes },
      },
      // OpenAPI 3.1 supports `const`.
      convertConstToEnum: false,
      transform: ({ schema, url, route }) => ({
        url,
        schema: {
          ...schema,
          ...(route.config?.documentedBody ? { body: route.config.documentedBody } : {}),
          ...(route.config?.isBodyOptional ? { [bodyOptional]: true } : {}),
          // A route for all methods is a fallback for unknown paths, not an operation.
          ...(Array.isArray(route.method) ? { hide: true } : {}),
        },
      }),
      transformObject: (made) =>
        'openapiObject' in made ? finish(made.openapiObject as OpenapiDocument) : {},
    },
    (error) => {
      if (error) throw error
    },
  )
  const options = {
    schema: { hide: true },
    onRequest: (request: FastifyRequest) => addressLimit(networkOf(request.ip)),
  }
  // Built on the first request, when all routes exist.
  let text: string | undefined
  app.get('/openapi.json', options, (_request, reply) => {
    text ??= openapiText(app)
    return reply.type('application/json; charset=utf-8').send(text)
  })
}

/** Marks an operation that needs no body until `finishOperation`, because the plugin documents every body as required. */
const bodyOptional = 'x-body-optional'

/** Called once the server is ready. */
export const openapiDocument = (app: HttpServer): OpenapiDocument =>
  app.swagger() as unknown as OpenapiDocument

export const openapiText = (app: HttpServer): string => `${JSON.stringify(openapiDocument(app), null, 2)}\n`

const securitySchemes = {
  accessToken: {
    type: 'http',
    scheme: 'bearer',
    bearerFormat: 'JWT',
    description:
      'An access token, issued by `POST /v1/auth/token` (valid for ten minutes) or by an OpenID Connect provider configured by the operator.',
  },
  apiKey: {
    type: 'http',
    scheme: 'bearer',
    bearerFormat: 'pk_live_… or pk_test_…',
    description:
      'A project API key, sent as a bearer token. Its scopes determine what it can do. Administrative operations do not accept API keys.',
  },
  session: {
    type: 'apiKey',
    in: 'cookie',
    name: '__Secure-postern.session_token',
    description:
      'The session cookie, set when you sign in. Without TLS, for example in development, the cookie name has no `__Secure-` prefix.',
  },
} as const

function finish({ openapi, info, servers, paths, components }: OpenapiDocument): OpenapiDocument {
  const named = new NamedSchemas()
  const finishedPaths = mapValues(paths, (methods) =>
    mapValues(methods, (operation) => finishOperation(operation, named)),
  )
  const used = Object.values(paths).flatMap((methods) => Object.values(methods).flatMap(({ tags }) => tags))
  const document = {
    openapi,
    info,
    servers,
    tags: [...tags.filter(({ name }) => used.includes(name)), webhookTag],
    paths: finishedPaths,
    webhooks: webhooks((schema) => named.refer(schema)),
    components: { ...components, schemas: named.all() },
  }
  // The document as served, without undefined members.
  return JSON.parse(JSON.stringify(document))
}

/** The document with named schemas, and with its members in an order that does not depend on the source. */
function finishOperation(operation: Operation, named: NamedSchemas): Operation {
  const {
    operationId,
    tags,
    summary,
    description,
    security,
    parameters,
    requestBody,
    responses,
    [bodyOptional]: isBodyOptional = false,
    ...rest
  } = operation
  const finishContent = (content: Content | undefined): Content | undefined =>
    content &&
    mapValues(content, (media) => ({ ...media, schema: media.schema && named.refer(media.schema) }))
  return {
    operationId,
    tags,
    summary,
    description,
    security,
    ...rest,
    parameters: parameters
      ?.toSorted((one, other) => places.indexOf(one.in) - places.indexOf(other.in))
      .map(({ name, in: place, schema, ...others }) => ({
        name: place === 'header' ? asHeader(name) : name,
        in: place,
        ...others,
        schema: schema && named.refer(schema),
      })),
    requestBody: requestBody && {
      ...requestBody,
      required: !isBodyOptional,
      content: finishContent(requestBody.content),
    },
    responses: mapValues(responses, (response) => ({
      ...response,
      headers: finishContent(response.headers),
      content: finishContent(response.content),
    })),
  }
}

const places = ['path', 'query', 'header']

/** Fastify lists headers in lower case; `If-Match` is easier to read. */
const asHeader = (name: string): string => name.replaceAll(/\b[a-z]/g, (letter) => letter.toUpperCase())

const mapValues = <From, To>(record: Record<string, From>, change: (value: From) => To): Record<string, To> =>
  Object.fromEntries(Object.entries(record).map(([key, value]) => [key, change(value)]))
