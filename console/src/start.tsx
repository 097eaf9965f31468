import '@mantine/core/styles.css'
import './main.css'
import { MantineProvider } from '@mantine/core'
import { QueryClientProvider } from '@tanstack/react-query'
import { type ComponentType, type ReactNode, StrictMode, Suspense } from 'react'
import { createRoot } from 'react-dom/client'
import { addOperations } from './api/client.ts'
import type { OperationEntry } from './api/operations.gen.ts'
import { queryClient } from './api/queries.ts'
import { basePath } from './base-path.ts'
import { useBranding, useInstallationName } from './components/installation.ts'
import { ToastProvider } from './components/toast.tsx'
import { ZoneProvider } from './components/use-zone.tsx'
import { SignInGate } from './signin/sign-in.tsx'
import { themeOf, variables } from './theme.ts'

/** Shows an entrance: the administrators' console, or the customers' app. */
export function start(
  operations: Record<string, OperationEntry>,
  pages: ReactNode,
  /** Pages that need no session, by path. */
  publicPages: Record<string, ComponentType> = {},
): void {
  addOperations(operations)
  const PublicPage = publicPages[window.location.pathname.slice(basePath.length + 1)]
  /** The server puts a nonce into every page for the few styles that are created at run time. */
  const nonce = document.querySelector<HTMLElement>('meta[property="csp-nonce"]')?.nonce ?? ''
  // A dialog's scroll lock (get-nonce) reads the nonce from this variable; Mantine does not pass the nonce on.
  Object.assign(window, { __webpack_nonce__: nonce })

  const root = document.getElementById('root')
  if (!root) throw new Error('index.html has no #root')
  createRoot(root).render(
    <StrictMode>
      <QueryClientProvider client={queryClient}>
        <Themed nonce={nonce}>
          <ZoneProvider>
            <ToastProvider>
              <SignInGate />
              <Suspense>{PublicPage ? <PublicPage /> : pages}</Suspense>
            </ToastProvider>
          </ZoneProvider>
        </Themed>
      </QueryClientProvider>
    </StrictMode>,
  )
}

/** In the colours of the operator, and with the operator's name in the title of the window. */
function Themed({ nonce, children }: { nonce: string; children: ReactNode }) {
  const { color } = useBranding()
  useInstallationName()
  return (
    <MantineProvider
      theme={themeOf(color)}
      defaultColorScheme="auto"
      cssVariablesResolver={variables}
      getStyleNonce={() => nonce}
    >
      {children}
    </MantineProvider>
  )
}
