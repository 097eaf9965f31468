import { Button, Text } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { call } from '../api/client.ts'
import { refetchAll, useAnswer } from '../api/queries.ts'
import { Badge } from '../components/badge.tsx'
import { RelativeTime } from '../components/relative-time.tsx'
import { QueryState } from '../components/states.tsx'
import { useToast } from '../components/toast.tsx'
import classes from './account.module.css'
import { deviceOf } from './device.ts'
import { Part } from './part.tsx'

export function Sessions() {
  const sessions = useAnswer('auth.list-sessions', {})
  const toast = useToast()
  const onError = ({ message }: Error) => toast(message)
  const end = useMutation({
    mutationFn: (id: number) => call('auth.end-session', { path: { id: String(id) } }),
    onError,
    onSettled: refetchAll,
  })
  const endOthers = useMutation({
    mutationFn: () => call('auth.end-other-sessions'),
    onError,
    onSettled: refetchAll,
  })
  const count = sessions.data?.data.length ?? 0
  return (
    <Part
      title="Sessions"
      about="Where you are signed in. End those that you do not recognise, and change your password."
      actions={
        count > 1 && (
          <Button variant="default" loading={endOthers.isPending} onClick={() => endOthers.mutate()}>
            End all other sessions
          </Button>
        )
      }
    >
      <QueryState query={sessions} rows={2}>
        {({ data }) => (
          <ul className={classes.rows} aria-label="Sessions">
            {data.map(({ id, is_current, ip_address, user_agent, created_at }) => (
              <li key={id} className={classes.row}>
                <div className={classes.what}>
                  <Text component="div">
                    {deviceOf(user_agent)} {is_current && <Badge tone="good">this session</Badge>}
                  </Text>
                  <Text size="sm" c="dimmed" component="div">
                    {ip_address ?? 'Unknown address'} · signed in <RelativeTime at={created_at} />
                  </Text>
                </div>
                {!is_current && (
                  <Button
                    size="compact-md"
                    variant="default"
                    aria-label={`End the session of ${deviceOf(user_agent)}, ${ip_address ?? ''}`}
                    onClick={() => end.mutate(id)}
                  >
                    End
                  </Button>
                )}
              </li>
            ))}
          </ul>
        )}
      </QueryState>
    </Part>
  )
}
