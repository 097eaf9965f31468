import { type OwnerNoticeDeps, sendOwnerNotices } from '../notifications/owner-notices.ts'
import { deleteLate, deleteNotice, listNotices, type Notice } from './disabled-notices.sql.ts'

/** Notices to the owner of a project with a disabled endpoint (health.ts). */
export const sendDisabledNotices = (
  deps: OwnerNoticeDeps,
  atMost: number,
  signal: AbortSignal,
): Promise<void> =>
  sendOwnerNotices(
    {
      subject: 'a disabled endpoint',
      ...{ list: listNotices, delete: deleteNotice, deleteLate },
      idsOf: ({ project_id, endpoint_id }) => ({ project_id, endpoint_id }),
      mailFor(notice: Notice, publicUrl) {
        const { email, disabled_reason } = notice
        if (email === null || disabled_reason === null) return null
        return { to: email, ...textOf({ ...notice, disabled_reason }, publicUrl) }
      },
    },
    deps,
    atMost,
    signal,
  )

function textOf(
  { project_id, endpoint_id, name, url, project_name, disabled_reason }: Notice & { disabled_reason: string },
  { origin }: URL,
): { subject: string; text: string } {
  const path = `${origin}/v1/projects/${project_id}/endpoints/${endpoint_id}`
  return {
    subject: `Endpoint "${name}" was disabled`,
    text: [
      `The endpoint "${name}" in your project "${project_name}" was disabled and no longer receives events.`,
      `URL: ${url}`,
      `Reason: ${disabled_reason}`,
      `Its responses are listed at ${path}/attempts.`,
      `When it works again, enable it: PATCH ${path} with "is_active": true. Then replay the events that it missed: POST ${path}/replay.`,
    ].join('\n\n'),
  }
}
