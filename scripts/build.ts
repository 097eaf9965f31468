import { buildConsole } from './console-build.ts'
import { buildServer } from './server-build.ts'

/**
 * `npm run build`: builds the console, then the server including the console. server/dist is the installable package.
 */
await buildConsole()
await buildServer()
