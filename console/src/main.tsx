import '@mantine/core/styles.css'
import './main.css'
import { MantineProvider } from '@mantine/core'
import { QueryClientProvider } from '@tanstack/react-query'
import { RouterProvider } from '@tanstack/react-router'
import { StrictMode, Suspense } from 'react'
import { createRoot } from 'react-dom/client'
import { queryClient } from './api/queries.ts'
import { ToastProvider } from './components/toast.tsx'
import { isResetPage, ResetPassword } from './pages/signin/reset-password.tsx'
import { SignInGate } from './pages/signin/sign-in.tsx'
import { router } from './routes.tsx'
import { theme, variables } from './theme.ts'

/** The server puts a nonce into every page for the few styles that are created at run time. */
const nonce = document.querySelector<HTMLElement>('meta[property="csp-nonce"]')?.nonce ?? ''
// A dialog's scroll lock (get-nonce) reads the nonce from this variable; Mantine does not pass the nonce on.
Object.assign(window, { __webpack_nonce__: nonce })

const root = document.getElementById('root')
if (!root) throw new Error('index.html has no #root')
createRoot(root).render(
  <StrictMode>
    <MantineProvider
      theme={theme}
      defaultColorScheme="auto"
      cssVariablesResolver={variables}
      getStyleNonce={() => nonce}
    >
      <QueryClientProvider client={queryClient}>
        <ToastProvider>
          {isResetPage() ? (
            <ResetPassword />
          ) : (
            <>
              <SignInGate />
              <Suspense>
                <RouterProvider router={router} />
              </Suspense>
            </>
          )}
        </ToastProvider>
      </QueryClientProvider>
    </MantineProvider>
  </StrictMode>,
)
