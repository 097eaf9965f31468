import { buildConsole } from './console-build.ts'
import { buildServer } from './server-build.ts'
import { buildSite } from './site-build.ts'

/**
 * `npm run build`: builds the console and the documentation, then the server including both. server/dist is the
 * installable package.
 */
await Promise.all([buildConsole(), buildSite()])
await buildServer()
