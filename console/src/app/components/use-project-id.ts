import { useParams } from '@tanstack/react-router'

/** The project of the page. */
export const useProjectId = (): number => Number(useParams({ strict: false }).projectId)
