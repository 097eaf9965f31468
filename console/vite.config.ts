import react from '@vitejs/plugin-react'
import { defineConfig } from 'vite'

export default defineConfig({
  // The server replaces it with a fresh nonce in every response: see server/src/http/console-files.ts.
  html: { cspNonce: '__CSP_NONCE__' },
  base: '/console/',
  plugins: [react()],
  build: {
    // Next to the server's source, which reads it from there.
    outDir: '../server/console',
    emptyOutDir: true,
    target: 'es2024',
    // A data: URL would have to be allowed by the content security policy in addition to 'self'.
    assetsInlineLimit: 0,
    license: { fileName: 'THIRD-PARTY.md' },
  },
  server: { proxy: { '/v1': 'http://127.0.0.1:8080' } },
})
