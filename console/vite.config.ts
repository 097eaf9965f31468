import react from '@vitejs/plugin-react'
import { defineConfig } from 'vite'

/**
 * Each entrance is built separately, so that its files contain nothing of the other one: the customers' app with
 * `--mode app`, otherwise the administrators' console.
 */
export default defineConfig(({ mode }) => {
  const isApp = mode === 'app'
  return {
    root: isApp ? 'src/app' : 'src/admin',
    publicDir: '../../public',
    base: isApp ? '/app/' : '/console/',
    // The server replaces it with a fresh nonce in every response: see server/src/http/web-files.ts.
    html: { cspNonce: '__CSP_NONCE__' },
    plugins: [react()],
    build: {
      // Next to the server's source, which reads it from there.
      outDir: isApp ? '../../../server/app' : '../../../server/console',
      emptyOutDir: true,
      target: 'es2024',
      // A data: URL would have to be allowed by the content security policy in addition to 'self'.
      assetsInlineLimit: 0,
      license: { fileName: 'THIRD-PARTY.md' },
    },
    server: { proxy: { '/v1': 'http://127.0.0.1:8080' } },
  }
})
