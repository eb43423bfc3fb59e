import type { MessageTable } from './types.ts'

/** Start errors and log lines (field `code`) of the operator: PX50xx. */
export const operatorMessages = {
  PX5001: {
    title: 'operator cannot start',
    cause: 'A setting of the operator is not valid, or no API server can be reached.',
    fix: 'Correct the variable that the message names; operator/README.md lists the settings.',
  },
  PX5002: {
    title: 'setting of the operator is ignored',
    cause: 'PROXY_GATEWAY_CLASS_PARAMETERS_REFS names a GatewayClass that this operator does not create.',
    fix: 'Use the name of the GatewayClass of this operator, or set parametersRef of your own GatewayClass.',
  },
  PX5003: {
    title: 'certificate of the config stream is not usable',
    cause: 'Secret proxy-xds-cert changed and cannot be used. The previous certificate stays in use.',
    fix: 'Write a certificate and its key to tls.crt and tls.key, and the CA to ca.crt.',
  },
  PX5004: {
    title: 'key set cannot be fetched',
    cause: 'A remote key set (JWKS) cannot be fetched. The previous keys stay in force, and the fetch is retried.',
    fix: 'Check the URL, its certificate, and whether network policies let the operator reach it.',
  },
  PX5005: {
    title: 'translation failed',
    cause: 'An unexpected error. The last config stays in force.',
    fix: 'Report the error with the log line; it is a defect of the program.',
  },
  PX5006: {
    title: 'data plane rejected part of the config',
    cause: 'A data plane cannot use a message, usually because it has another version than the operator. It keeps the last valid version of that message.',
    fix: 'Use the same version for operator and data plane. Field `rejected` names keys and errors.',
  },
  PX5007: {
    title: 'resource definitions are missing',
    cause: 'Some custom resource definitions are not installed. Their objects count as absent until they are.',
    fix: 'Install the Gateway API and the chart proxy-crds, if you need these kinds.',
  },
  PX5008: {
    title: 'request to the API server failed',
    cause: 'A watch, a write or the election failed. It is retried; what was read before stays in force.',
    fix: 'If it lasts, check the API server and the permissions of the operator. The message names request and error.',
  },
  PX5009: {
    title: 'OpenAPI document cannot be fetched',
    cause: 'The document of an MCP target cannot be fetched. The previous document stays in force, and the fetch is retried.',
    fix: 'Check the URL, its certificate, and whether network policies let the operator reach it. Redirects are not followed.',
  },
  PX5010: {
    title: 'image of a plugin cannot be fetched',
    cause:
      'The file of an image that a policy names as a plugin cannot be fetched. Data planes keep the version that they have loaded, and the fetch is retried.',
    fix: 'Check the image and the path, whether network policies let the operator reach the registry, and its CA and credentials in `controller.pluginRegistries` of the Helm chart.',
  },
} as const satisfies MessageTable

export type OperatorCode = keyof typeof operatorMessages
