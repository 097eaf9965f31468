import { buildConsole } from './console-build.ts'
import { buildServer } from './server-build.ts'

/** `npm run build`: the console, then the server with the console in it; server/dist is what is installed. */
await buildConsole()
await buildServer()
