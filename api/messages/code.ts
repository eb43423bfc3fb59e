import type { ConfigCode } from './config-messages.ts'
import type { DataplaneCode } from './dataplane-messages.ts'
import type { GatewayCode } from './gateway-messages.ts'
import type { ManifestCode } from './manifest-messages.ts'
import type { OperatorCode } from './operator-messages.ts'
import type { PolicyCode } from './policy-messages.ts'
import type { ProxyctlCode } from './proxyctl-messages.ts'
import type { RouteCode } from './route-messages.ts'

/** Stable code of a message, such as `PX1012`. A code is never used for another message, nor changed. */
export type MessageCode = GatewayCode | RouteCode | PolicyCode | ManifestCode | ConfigCode | DataplaneCode | OperatorCode | ProxyctlCode

/** Appends the code to a message of a status, a validator or a command: `Service not found: shop/cart [PX1207]`. */
export const withCode = (message: string, code: MessageCode): string => `${message} [${code}]`

/** Removes codes from a message that is sent to clients, whose texts are those of the error table. */
export const withoutCodes = (message: string): string => message.replaceAll(/ \[PX\d{4}\]/g, '')
