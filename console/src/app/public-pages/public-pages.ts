import { type ComponentType, lazy } from 'react'

/** The pages that need no session, by path. Most are opened by a link in a mail, whose fragment is a token. */
export const publicPages: Record<string, ComponentType> = {
  'sign-up': lazy(() => import('./sign-up.tsx').then((module) => ({ default: module.SignUp }))),
  'confirm-sign-up': lazy(() =>
    import('./confirm-sign-up.tsx').then((module) => ({ default: module.ConfirmSignUp })),
  ),
  invitation: lazy(() => import('./invitation.tsx').then((module) => ({ default: module.Invitation }))),
  'confirm-email': lazy(() =>
    import('./confirm-link.tsx').then((module) => ({ default: module.ConfirmEmail })),
  ),
  'undo-email': lazy(() => import('./confirm-link.tsx').then((module) => ({ default: module.UndoEmail }))),
  'reset-password': lazy(() =>
    import('./reset-password.tsx').then((module) => ({ default: module.ResetPassword })),
  ),
}
