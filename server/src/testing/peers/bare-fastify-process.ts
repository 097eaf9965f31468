import { AjvCompiler as ajvCompiler } from '@fastify/ajv-compiler'
import swagger from '@fastify/swagger'
import Fastify from 'fastify'

/** A bare Fastify server with the plugins of `postern api`, for bench/idle.ts. The first argument is its port. */
const app = Fastify({
  logger: true,
  schemaController: { compilersFactory: { buildValidator: ajvCompiler() } },
})
await app.register(swagger, { openapi: { openapi: '3.1.0', info: { title: 'Bare', version: 'v1' } } })
app.get('/healthz', { logLevel: 'silent' }, async () => ({ status: 'ok' }))
process.once('SIGTERM', () => void app.close())
await app.listen({ host: '127.0.0.1', port: Number(process.argv[2]) })
