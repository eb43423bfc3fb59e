/**
 * Settings of LiteLLM, by section, whose loss opens nothing: those that add features, route, retry, cache, record, or admit more requests. `*` at the end stands
 * for any text. The import takes all other settings for protective, also those of later versions.
 */
export const harmlessSettings = {
  file: names(`
    agent_list agents assistant_settings credential_list default_vertex_config files_settings finetune_settings mcp_tools sandbox_tools search_tools
    vector_store_registry worker_registry`),
  general_settings: names(`
    alert_to_webhook_url alert_type_config alert_types alerting alerting_args alerting_threshold allow_client_side_credentials
    allow_requests_on_db_unavailable always_include_stream_usage background_health_check* cancel_on_disconnect coordination_redis custom_key_generate
    database_connect_timeout database_connection_pool_limit database_connection_pool_timeout database_connection_timeout
    database_disable_prepared_statements database_extra_connection_params database_max_idle_connection_lifetime database_socket_timeout
    disable_adding_master_key_hash_to_db disable_auto_add_proxy_admin_to_teams disable_budget_reservation disable_master_key_return
    disable_model_info_refresh disable_prisma_schema_update disable_reset_budget disable_responses_id_security
    disable_retry_on_max_parallel_request_limit_error disable_spend_logs disable_spend_updates email enable_health_check_routing enable_public_model_hub
    expose_fallback_errors_to_caller failed_login_* forward_client_headers_to_llm_api forward_openai_org_id health_check_* hide_default_credentials_hint
    include_call_id_in_error_body litellm_license max_failed_login_* maximum_autorouter_session_retention_period maximum_daily_tag_spend_retention_period
    maximum_health_check_retention_period maximum_spend_logs_* model_list_healthy_only ms_teams otel pass_through_endpoints pass_through_request_timeout
    password_policy_* plugins proxy_batch_polling_interval proxy_batch_write_at proxy_budget_rescheduler_max_time proxy_budget_rescheduler_min_time
    proxy_config_reload_interval_seconds scheduled_job_stagger search_tools slack spend_capture_rate_check spend_logs_metadata_fields
    spend_logs_prompt_storage spend_report_frequency store_prompts_in_spend_logs supported_db_objects tracing track_unmanaged_batch_cost ui_access_mode
    use_client_credentials_pass_through_routes use_redis_transaction_buffer use_shared_health_check use_spend_logs_ledger use_spend_logs_partitioning
    user_api_key_cache_max_size user_api_key_cache_ttl user_header_mappings user_header_name user_mcp_management_mode`),
  litellm_settings: names(`
    aiohttp_trust_env allowed_fails anthropic_prompt_caching_ttl anthropic_sse_ping_interval_seconds argilla_* autorouter_presets_url
    aws_sqs_callback_params blog_posts_url cache cache_params caching content_policy_fallbacks context_window_fallbacks cost_discount_config
    cost_margin_config custom_prometheus_* datadog_* default_fallbacks default_in_memory_ttl default_redis_* disable_add_transform_inline_image_block
    disable_aiohttp_* disable_copilot_system_to_assistant disable_end_user_cost_tracking* disable_hf_tokenizer_download disable_streaming_logging
    disable_token_counter drop_params dynamodb_table_name enable_anthropic_prompt_caching enable_caching_on_provider_specific_optional_params
    enable_end_user_cost_tracking_prometheus_only enable_key_alias_format_validation enable_loadbalancing_on_batch_endpoints enable_preview_features
    enable_redis_auth_cache error_logs fallbacks force_ipv4 force_redis_hash_tag_grouping include_cost_in_streaming_usage json_logs langfuse_default_tags
    langsmith_batch_size LITELLM_DISABLE_STOP_SEQUENCE_LIMIT max_fallbacks max_ui_session_budget mcp_aliases model_cost_map_url model_fallbacks
    modify_params num_retries num_retries_per_request prometheus_* request_timeout return_response_headers s3_audit_callback_params s3_callback_params
    service_callback service_callbacks set_verbose sse_keepalive_ping_interval_seconds store_audit_logs suppress_* telemetry use_aiohttp_transport
    use_chat_completions_url_for_anthropic_messages vector_store_registry`),
  router_settings: names(`
    alerting_config allowed_fails allowed_fails_policy assistants_config background_health_check_model_groups cache_kwargs cache_responses caching_groups
    client_ttl content_policy_fallbacks context_window_fallbacks cooldown_time debug_level default_fallbacks default_priority
    deployment_affinity_ttl_seconds disable_cooldowns enable_health_check_routing enable_mid_stream_fallback_continuation enable_weighted_failover
    fallback_on_unsupported_params fallbacks health_check_* ignore_invalid_deployments max_fallbacks max_retries model_group_affinity_config
    model_group_alias model_group_retry_policy num_retries polling_interval redis_* retry_after retry_policy router_general_settings routing_groups
    routing_strategy routing_strategy_args search_tools session_affinity_repin_on_failover set_verbose stream_timeout timeout weights`),
  litellm_params: names(`
    additional_drop_params allow_client_keepalive_override annotation_cost_per_* base_model cache_creation_input_* cache_read_input_*
    citation_cost_per_token configurable_clientside_auth_params cooldown_time cost_per_query cost_per_second drop_params
    explicit_cache_read_input_token_cost input_cost_per_* keepalive_seconds litellm_trace_id max_retries merge_reasoning_content_in_choices num_retries
    ocr_cost_per_* order organization output_cost_per_* search_context_cost_per_query search_queries_cost_per_query stream stream_timeout
    stream_timeout_by_service_tier thought_signature_in_tool_call_id tiered_pricing timeout timeout_by_service_tier use_chat_completions_api
    use_in_pass_through weight`),
  model_info: names(`
    annotation_cost_per_* base_model cache_creation_input_* cache_read_input_* citation_cost_per_token cost_per_ptu_per_hour cost_per_second created_at
    created_by db_model deprecation_date disable_background_health_check discoverable display_name explicit_cache_read_input_token_cost health_check_* id
    input_cost_per_* internal_router_model litellm_provider max_input_tokens max_output_tokens max_tokens mode ocr_cost_per_* off_peak_pricing
    output_cost_per_* output_vector_size pricing_provider ptu_count ptu_effective_from ptu_effective_to reasoning_* search_context_cost_per_query
    search_queries_cost_per_query supported_audio_formats supported_openai_params supports_* thinking_* tiered_pricing token_count_* updated_at updated_by`),
  mcp_servers: names(`
    alias allow_all_keys byok_api_key_help_url byok_description created_at delegate_auth_to_upstream description extra_headers instructions mcp_info
    server_id server_name timeout tool_name_to_description tool_name_to_display_name updated_at`),
} as const

/** Protective settings that are off with the value false. */
export const switches = {
  general_settings: names(`
    allow_user_auth default_team_disabled enable_jwt_auth enable_oauth2_auth enable_oauth2_proxy_auth enforce_user_param infer_model_from_keys
    reject_clientside_metadata_tags use_x_forwarded_for`),
  litellm_settings: names(`enable_json_schema_validation redact_user_api_key_info turn_off_message_logging`),
  router_settings: names(`enable_pre_call_checks enable_tag_filtering`),
} as const

/** Where LiteLLM keeps keys of clients. Without them, only the master key admits requests. */
export const keyStores = names(`
  database_args database_type database_url key_management_settings key_management_system store_model_in_db use_azure_key_vault use_google_kms`)

function names(text: string): readonly string[] {
  return text.trim().split(/\s+/)
}
