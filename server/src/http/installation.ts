import type { FastifyReply, FastifyRequest } from 'fastify'
import Type, { type Static } from 'typebox'
import type { Logo } from '../config/branding.ts'
import type { Config } from '../config/config.ts'
import { nullable } from '../core/shared/wire.ts'
import { PosternError } from '../platform/errors.ts'
import { refuseOtherMethods } from '../platform/http/allowed-methods.ts'
import { type Compressed, compressed, sendCompressed } from '../platform/http/compressed.ts'
import { decodeParameters } from '../platform/http/parameters.ts'
import { Problem } from '../platform/http/problem.ts'
import { networkOf, type RateLimit } from '../platform/http/rate-limit.ts'
import type { HttpServer } from '../platform/http/server.ts'

/** How the operator presents the installation. Public, because the sign-in pages show it. */
export interface InstallationDeps {
  config: Pick<
    Config,
    | 'installationName'
    | 'logo'
    | 'color'
    | 'supportEmail'
    | 'supportUrl'
    | 'termsUrl'
    | 'privacyUrl'
    | 'customerPlanId'
    | 'signInIssuers'
  >
  /** Whether people can sign up. */
  acceptsSignUps: boolean
  addressLimit: RateLimit
}

const Installation = Type.Object(
  {
    name: Type.String({ description: "The operator's name for the installation." }),
    logo_url: nullable(
      Type.String({
        description:
          'The path of the logo on this server. It contains a digest of the logo, so the response can be cached.',
        examples: ['/v1/installation/logo?v=8c41f0d2a97be365'],
      }),
    ),
    color: nullable(
      Type.String({
        description:
          'The accent colour, as #rrggbb. White text has a contrast of at least 4.5:1 on this colour.',
        examples: ['#2f4fd0'],
      }),
    ),
    support_email: nullable(Type.String()),
    support_url: nullable(Type.String()),
    terms_url: nullable(Type.String()),
    privacy_url: nullable(Type.String()),
    sign_up: Type.Boolean({ description: 'Whether people can sign up for an account (`auth.sign-up`).' }),
    sign_in_issuers: Type.Array(
      Type.Object({ id: Type.String(), label: Type.String() }, { additionalProperties: false }),
      {
        description: 'The OpenID Connect issuers at which people can sign in (`auth.start-issuer-sign-in`).',
        examples: [[{ id: 'example', label: 'Example' }]],
      },
    ),
    customers_create_projects: Type.Boolean({
      description: 'Whether customers can create projects. If not, an administrator creates them.',
    }),
  },
  { title: 'Installation', additionalProperties: false },
)

const problem = (description: string) => ({
  description,
  content: { 'application/json': { schema: Problem } },
})
const tooManyRequests = problem(
  '`rate_limited`: too many requests from this address. Try again after the time in `Retry-After`.',
)

const shown = {
  tags: ['installation'],
  security: [],
}

const showSchema = {
  ...shown,
  operationId: 'installation.show',
  summary: 'Show the installation',
  description:
    'Returns the name, the logo, the colour and the links that the operator configured for sign-in pages and web apps, the issuers at which people can sign in, and whether customers can create projects. The response can be cached for five minutes.',
  querystring: Type.Object({}, { additionalProperties: false }),
  response: {
    200: {
      description: 'The installation.',
      content: { 'application/json': { schema: Installation } },
    },
    400: problem('`invalid_parameter`: a query parameter is not supported.'),
    429: tooManyRequests,
  },
}

const logoSchema = {
  ...shown,
  operationId: 'installation.show-logo',
  summary: 'Show the logo',
  description:
    "Returns the operator's logo, an SVG or PNG image. Use the path in `logo_url` of `installation.show`.",
  querystring: Type.Object(
    { v: Type.Optional(Type.String({ maxLength: 64, description: 'The digest in `logo_url`.' })) },
    { additionalProperties: false },
  ),
  response: {
    200: {
      description: 'The image.',
      content: {
        'image/svg+xml': { schema: Type.String() },
        'image/png': { schema: Type.String() },
      },
    },
    400: problem('`invalid_parameter`: a query parameter is not supported or too long.'),
    404: problem('`not_found`: the operator configured no logo.'),
    429: tooManyRequests,
  },
}

const path = '/v1/installation'
const logoPath = `${path}/logo`

/** An SVG that is opened as a document runs no scripts and loads nothing. Its style attributes apply. */
const logoPolicy = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; sandbox"

export function installationRoutes(
  app: HttpServer,
  { config, acceptsSignUps, addressLimit }: InstallationDeps,
): void {
  const { logo } = config
  const answer: Static<typeof Installation> = {
    name: config.installationName,
    logo_url: logo ? `${logoPath}?v=${logo.digest}` : null,
    color: config.color ?? null,
    support_email: config.supportEmail ?? null,
    support_url: config.supportUrl ?? null,
    terms_url: config.termsUrl ?? null,
    privacy_url: config.privacyUrl ?? null,
    sign_up: acceptsSignUps,
    sign_in_issuers: config.signInIssuers.map(({ id, label }) => ({ id, label })),
    customers_create_projects: config.customerPlanId !== undefined,
  }
  const image = logo && compressed(logo.bytes)
  const counted = {
    onRequest: ({ ip }: FastifyRequest) => addressLimit(networkOf(ip)),
    preValidation: decodeParameters,
  }

  app.get(path, { ...counted, schema: showSchema }, async (_request, reply) => {
    reply.header('cache-control', 'public, max-age=300')
    return answer
  })
  app.get(logoPath, { ...counted, schema: logoSchema }, async (request, reply) => {
    if (!logo || !image) throw new PosternError('not_found', 'The operator configured no logo.')
    reply.header('cache-control', 'public, max-age=86400').header('content-security-policy', logoPolicy)
    return sendImage(request, reply, image, logo.type)
  })
  refuseOtherMethods(
    app,
    [path, logoPath].map((url) => ({ method: 'GET', url, onRequest: counted.onRequest })),
  )
}

/** A PNG image is already compressed. */
async function sendImage(
  request: FastifyRequest,
  reply: FastifyReply,
  image: Compressed,
  type: Logo['type'],
): Promise<FastifyReply> {
  reply.type(type)
  return type === 'image/svg+xml' ? sendCompressed(request, reply, image) : reply.send(image.plain)
}
