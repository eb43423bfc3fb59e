import { defineSlot } from './slot.ts'

/** Set by a CORS policy that allows the Origin of the request. */
export const allowedOrigin = defineSlot<true>('allowedOrigin')
