import type { MessageTable } from './types.ts'

/** Errors of proxyctl: PX60xx. */
export const proxyctlMessages = {
  PX6001: {
    title: 'command line is not valid',
    cause: 'A command, argument or option is unknown or missing. The exit status is 2.',
    fix: '`proxyctl COMMAND --help` shows usage and examples.',
  },
  PX6002: {
    title: 'command failed',
    cause: 'An error of the operating system or of a response that proxyctl does not expect.',
    fix: 'The message names the cause.',
  },
  PX6003: {
    title: 'data plane cannot be reached',
    cause: 'Nothing answers at the admin endpoint. In a pod it listens on loopback only.',
    fix: 'Name the data plane: `--gateway NS/NAME` on a cluster, `--admin HOST:PORT` for a standalone gateway, which prints the address when it starts.',
  },
  PX6004: {
    title: 'data plane rejected the request',
    cause:
      'The admin endpoint responded with an error, for example because the route does not exist there, no request arrived in time, or the request had no token.',
    fix: 'The message is that of the admin endpoint. Check the name, or that --gateway or --admin names the data plane that has the route. For the token, the user of the kubeconfig needs verb get on Secret `<gateway>-admin-token`; with --admin, set ADMIN_TOKEN.',
  },
  PX6005: {
    title: 'API server cannot be reached',
    cause: 'The API server of the kubeconfig does not respond.',
    fix: 'Check the current context of the kubeconfig, or name another file with --kubeconfig.',
  },
  PX6006: {
    title: 'Gateway has no running pod',
    cause: 'The Gateway exists, and none of its data plane pods runs.',
    fix: '`proxyctl status` names the cause, such as an image that cannot be pulled.',
  },
  PX6007: {
    title: 'Gateway is ambiguous',
    cause: 'Several Gateways exist, and neither the arguments nor the route select one.',
    fix: 'Name one with --gateway, or a namespace with one Gateway with -n.',
  },
  PX6008: {
    title: 'object does not exist',
    cause: 'The named Gateway, route, policy, backend, namespace or code does not exist, or belongs to another controller.',
    fix: 'Correct the name; the message lists those that exist.',
  },
  PX6009: {
    title: 'file cannot be read',
    cause: 'A file or directory does not exist, holds no manifests, or is not of the expected form.',
    fix: 'Correct the path. Manifests end in .yaml, .yml or .json; `proxyctl config dump` writes dumps.',
  },
  PX6010: {
    title: 'request was not traced',
    cause: 'The request was sent or the program ended, and the data plane saw no request of it.',
    fix: 'Check that the URL leads to the data plane that --gateway or --admin names, and not to another pod.',
  },
  PX6011: {
    title: 'port of the console cannot be opened',
    cause: 'The port that --port names is in use, or this user may not open it.',
    fix: 'Name another port, or leave out --port: any free one is used.',
  },
  PX6012: {
    title: 'API key exists already',
    cause: 'The Secret has an entry of this name. `proxyctl keys create` replaces no key, because its clients would be rejected.',
    fix: 'Use another name, or remove the old key with `proxyctl keys revoke`.',
  },
  PX6013: {
    title: 'plugin cannot be built',
    cause: 'The source of the plugin has a syntax error, imports a module that does not exist or cannot be bundled, is too long, or a file cannot be written.',
    fix: 'Correct the line that the message names. Bundling needs esbuild, installed with npm next to the plugin. `proxyctl plugin init` replaces no existing file.',
  },
  PX6019: {
    title: 'MCP server cannot be read',
    cause: 'The server does not respond, rejects the request, or does not list its tools over Streamable HTTP.',
    fix: 'Check the URL in --server, and send a credential with --header.',
  },
} as const satisfies MessageTable

export type ProxyctlCode = keyof typeof proxyctlMessages
