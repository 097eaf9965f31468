import { RouterProvider } from '@tanstack/react-router'
import { start } from '../start.tsx'
import { operations } from './operations.gen.ts'
import { router } from './routes.tsx'

start(operations, <RouterProvider router={router} />)
