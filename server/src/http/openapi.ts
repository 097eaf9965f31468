import swagger from '@fastify/swagger'
import type { RateLimit } from '../platform/http/rate-limit.ts'
import type { HttpServer } from '../platform/http/server.ts'
import { NamedSchemas, type Schema } from './named-schemas.ts'
import { conventions, tags } from './openapi-conventions.ts'
import { referenceRoutes } from './reference.ts'

/**
 * The OpenAPI document, made from the schemas that requests are checked against: what it says is what holds.
 *
 * openapi/postern.v1.json is this document, committed; `npm run generate` writes it. It knows nothing of the
 * configuration, so every installation serves the same one.
 */
export interface OpenapiDocument {
  openapi: string
  info: object
  servers: object[]
  tags: { name: string }[]
  paths: Record<string, Record<string, Operation>>
  components: Record<string, object>
}

export interface Operation {
  operationId: string | undefined
  tags: string[] | undefined
  summary: string | undefined
  description: string | undefined
  security: object[] | undefined
  parameters: { in: string; name: string; schema: Schema | undefined }[] | undefined
  requestBody: { content: Content | undefined } | undefined
  responses: Record<
    string,
    { description: string; headers: Content | undefined; content: Content | undefined }
  >
}

type Content = Record<string, { schema: Schema | undefined }>

/**
 * The document, at /openapi.json and for people at /docs. To be called before the routes are made: only what is
 * made afterwards is in the document.
 */
export function registerOpenapi(app: HttpServer, addressLimit: RateLimit): void {
  // Called and not registered: a registered plugin runs when the server starts, too late to see our routes.
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
        servers: [{ url: '/', description: 'The server that this document comes from.' }],
        components: { securitySchemes },
      },
      // OpenAPI 3.1 knows `const`.
      convertConstToEnum: false,
      transform: ({ schema, url, route }) => ({
        url,
        schema: {
          ...schema,
          ...(route.config?.documentedBody ? { body: route.config.documentedBody } : {}),
          // What answers every method alike is a refusal of what does not exist, and no operation.
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
  referenceRoutes(app, () => openapiText(app), addressLimit)
}

/** Once the server is ready. */
export const openapiDocument = (app: HttpServer): OpenapiDocument =>
  app.swagger() as unknown as OpenapiDocument

export const openapiText = (app: HttpServer): string => `${JSON.stringify(openapiDocument(app), null, 2)}\n`

const securitySchemes = {
  accessToken: {
    type: 'http',
    scheme: 'bearer',
    bearerFormat: 'JWT',
    description:
      'An access token, drawn from a session at `POST /v1/auth/token` (it lives ten minutes) or issued by an OpenID Connect provider that the operator has configured.',
  },
  apiKey: {
    type: 'http',
    scheme: 'bearer',
    bearerFormat: 'pk_live_… or pk_test_…',
    description:
      'An API key of a project, sent as a bearer token. Its scopes define what it may do. It is never accepted by the administrative interface.',
  },
  session: {
    type: 'apiKey',
    in: 'cookie',
    name: '__Secure-postern.session_token',
    description:
      'The session, as signing in sets it. Where the service is reached without TLS, as on a developer’s machine, the name has no `__Secure-` in front.',
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
    tags: tags.filter(({ name }) => used.includes(name)),
    paths: finishedPaths,
    components: { ...components, schemas: named.all() },
  }
  // As whoever fetches it will see it: without the members that are undefined.
  return JSON.parse(JSON.stringify(document))
}

/** Its schemas named, and its members in an order that does not depend on who wrote it. */
function finishOperation(operation: Operation, named: NamedSchemas): Operation {
  const { operationId, tags, summary, description, security, parameters, requestBody, responses, ...rest } =
    operation
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
    requestBody: requestBody && { ...requestBody, content: finishContent(requestBody.content) },
    responses: mapValues(responses, (response) => ({
      ...response,
      headers: finishContent(response.headers),
      content: finishContent(response.content),
    })),
  }
}

const places = ['path', 'query', 'header']

/** Fastify knows headers in lower case; `If-Match` is easier to read. */
const asHeader = (name: string): string => name.replaceAll(/\b[a-z]/g, (letter) => letter.toUpperCase())

const mapValues = <From, To>(record: Record<string, From>, change: (value: From) => To): Record<string, To> =>
  Object.fromEntries(Object.entries(record).map(([key, value]) => [key, change(value)]))
