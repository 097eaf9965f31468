/** What is typed then belongs to the dialog, and so does the focus. */
export const isDialogOpen = (): boolean => document.querySelector('[role="dialog"]') !== null
