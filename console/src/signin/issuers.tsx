import { Alert, Button, Stack, Text } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { useSyncExternalStore } from 'react'
import { call } from '../api/client.ts'
import { basePath } from '../base-path.ts'
import { useInstallation } from '../components/installation.ts'

/** What the server puts into the fragment when the browser returns from an issuer. */
const sentences: Record<string, string> = {
  cancelled: 'The sign-in was cancelled.',
  refused:
    'You cannot sign in with this identity. If you have an account, sign in as before and connect the identity on the page of your account. Otherwise ask the operator of this service.',
  'second-factor':
    'Administrators need a second factor, and the issuer did not confirm one. Sign in there with your second factor, or use your password here.',
  expired: 'This sign-in took too long or was already used. Try again.',
  unavailable: 'The issuer does not respond. Try again later.',
  taken: 'This identity is already connected to an account.',
  'too-many': 'Your account has 10 connected identities. Disconnect one first.',
  linked: 'The identity is connected. You can now sign in with it.',
}

/** Read once, when the page is loaded, and removed from the address. */
let result = /^#issuer=([a-z-]{1,20})$/.exec(window.location.hash)?.[1]
if (result !== undefined) {
  window.history.replaceState(window.history.state, '', window.location.pathname + window.location.search)
}
const listeners = new Set<() => void>()

/** How the browser returned from an issuer. Undefined if it did not, or without a message. */
export const useIssuerResult = (): string | undefined => useSyncExternalStore(subscribe, () => result)

function subscribe(listener: () => void): () => void {
  listeners.add(listener)
  return () => listeners.delete(listener)
}

export function forgetIssuerResult(): void {
  result = undefined
  for (const listener of listeners) listener()
}

/** Says how the browser returned. */
export function IssuerMessage() {
  const shown = useIssuerResult()
  const sentence = shown === undefined ? undefined : sentences[shown]
  if (sentence === undefined) return null
  return shown === 'linked' ? (
    <Alert color="green" role="status" {...closable}>
      {sentence}
    </Alert>
  ) : (
    <Alert color={shown === 'cancelled' ? 'yellow' : 'red'} role="alert" {...closable}>
      {sentence}
    </Alert>
  )
}

const closable = { withCloseButton: true, closeButtonLabel: 'Close', onClose: forgetIssuerResult }

/** A button for each issuer. The browser leaves the page. */
export function IssuerButtons({
  isFresh,
  isOverPage,
}: {
  isFresh: boolean
  /** Whether a page with input is open below. */
  isOverPage: boolean
}) {
  const { data: installation } = useInstallation()
  const starting = useMutation({
    gcTime: 0,
    mutationFn: async (issuer: string) => {
      const { url } = await call('auth.start-issuer-sign-in', {
        path: { issuer },
        body: { return_to: pathHere(), fresh: isFresh },
      })
      goTo(url)
    },
  })
  if (!installation || installation.sign_in_issuers.length === 0) return null
  return (
    <Stack>
      {isOverPage && (
        <Text size="sm" c="dimmed">
          Single sign-on leaves this page. What you have typed is then lost.
        </Text>
      )}
      {installation.sign_in_issuers.map(({ id, label }) => (
        <Button
          key={id}
          variant="default"
          loading={starting.isPending && starting.variables === id}
          onClick={() => starting.mutate(id)}
        >
          Sign in with {label}
        </Button>
      ))}
      {starting.error && (
        <Alert color="red" role="alert">
          {starting.error.message}
        </Alert>
      )}
    </Stack>
  )
}

/** The page to which the browser returns. A path that the server would reject is replaced by the start page. */
export const pathHere = (): string => {
  const { pathname } = window.location
  return pathname.length <= 200 && /^\/(?:app|console)\/(?:[A-Za-z0-9_-]+\/)*[A-Za-z0-9_-]*$/.test(pathname)
    ? pathname
    : `${basePath}/`
}

export const goTo = (url: string): void => window.location.assign(url)
