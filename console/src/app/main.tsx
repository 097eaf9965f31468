import { RouterProvider } from '@tanstack/react-router'
import { start } from '../start.tsx'
import { operations } from './operations.gen.ts'
import { publicPages } from './public-pages/public-pages.ts'
import { router } from './routes.tsx'

start(operations, <RouterProvider router={router} />, publicPages)
