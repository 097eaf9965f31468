import { Button, Group, Modal, Stack } from '@mantine/core'
import { useMediaQuery } from '@mantine/hooks'
import { type ReactNode, useState } from 'react'
import { useIsSignInNeeded } from '../api/sign-in-gate.ts'
import { RevealSecret, secretOf } from '../components/reveal-secret.tsx'
import { useToast } from '../components/toast.tsx'
import { useReturnFocus } from '../components/use-return-focus.ts'

const narrow = '(max-width: 600px)'

export const useIsNarrow = (): boolean => useMediaQuery(narrow) ?? false

interface Result<T> {
  title: string
  /** The toast after success: "Project locked". */
  success: string
  /** Shown after success, before the dialog closes. A secret is always shown. */
  result?: ((answer: T) => ReactNode) | undefined
  done?: ((answer: T) => void) | undefined
}

/** The dialog in which a change is made: its form, then its result or its secret. */
export function ActModal<T>({
  act,
  size = 'lg',
  close,
  children,
}: {
  act: Result<T>
  size?: string
  close: () => void
  /** The form. Calls `finish` after success, and `onActing` when the mutation starts and ends. */
  children: (finish: (answer: T) => void, onActing: (isActing: boolean) => void) => ReactNode
}) {
  const [answer, setAnswer] = useState<{ data: T }>()
  const [isActing, setIsActing] = useState(false)
  const isSignInNeeded = useIsSignInNeeded()
  const toast = useToast()
  const isNarrow = useIsNarrow()
  useReturnFocus()

  const finish = (data: T) => {
    act.done?.(data)
    toast(act.success)
    if (secretOf(data) !== undefined || act.result) setAnswer({ data })
    else close()
  }
  const secret = secretOf(answer?.data)
  const mayClose = answer ? secret === undefined : !isActing
  return (
    <Modal
      opened
      onClose={close}
      // A secret cannot be shown again, and a running mutation cannot be canceled.
      closeOnEscape={mayClose && !isSignInNeeded}
      closeOnClickOutside={false}
      withCloseButton={mayClose}
      closeButtonProps={{ 'aria-label': 'Close' }}
      title={act.title}
      size={size}
      fullScreen={isNarrow}
    >
      {!answer ? (
        children(finish, setIsActing)
      ) : secret === undefined ? (
        <Stack>
          {act.result?.(answer.data)}
          <Group justify="flex-end">
            <Button onClick={close} autoFocus>
              Close
            </Button>
          </Group>
        </Stack>
      ) : (
        <RevealSecret secret={secret} close={close}>
          {act.result?.(answer.data)}
        </RevealSecret>
      )}
    </Modal>
  )
}
