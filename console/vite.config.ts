import react from '@vitejs/plugin-react'
import { defineConfig } from 'vite'

export default defineConfig({
  // The server puts a fresh nonce in its place, in every answer: see server/src/http/console-files.ts.
  html: { cspNonce: '__CSP_NONCE__' },
  base: '/console/',
  plugins: [react()],
  build: {
    // Beside the server's source, which reads it from there.
    outDir: '../server/console',
    emptyOutDir: true,
    target: 'es2024',
    // As a data address, an image would be the one thing that the content security policy must allow beside 'self'.
    assetsInlineLimit: 0,
    license: { fileName: 'THIRD-PARTY.md' },
  },
  server: { proxy: { '/v1': 'http://127.0.0.1:8080' } },
})
