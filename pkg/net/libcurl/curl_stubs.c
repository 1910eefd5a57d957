/* Stubs for what libcurl's archive asks of libraries that are not linked: for protocols, encodings and logins that
 * nothing here uses (cmake/CurlArchive.cmake). Shared, it would load them all, and what those need: 24 libraries.
 *
 * An HTTP server, or a name, can lead to four of them: those fail, and libcurl says so. Nothing can lead to the rest,
 * since requests are restricted to HTTP and HTTPS (CURLOPT_PROTOCOLS_STR), without cookies, and to a proxy's password
 * (CURLOPT_SOCKS5_AUTH): reaching one of them is a bug, and the program ends with a line that says so. */
#include <stdio.h>
#include <stdlib.h>

/* --- what is called when libcurl sets itself up --- */

int libssh2_init(int flags);
int libssh2_init(int flags)
{
    (void)flags;
    return 0;
}

void libssh2_exit(void);
void libssh2_exit(void)
{
}

/* --- what fails --- */

/* Transfer-Encoding: br, unasked, which libcurl 7.88 unpacks all the same; Content-Encoding it leaves alone, since
 * CURLOPT_ACCEPT_ENCODING is not set. NULL: no memory for it, see http_error.c. */
void *BrotliDecoderCreateInstance(void *allocate, void *release, void *arg);
void *BrotliDecoderCreateInstance(void *allocate, void *release, void *arg)
{
    (void)allocate;
    (void)release;
    (void)arg;
    return NULL;
}

/* Transfer-Encoding: zstd, likewise. */
void *ZSTD_createDStream(void);
void *ZSTD_createDStream(void)
{
    return NULL;
}

/* A name of a server that is not ASCII; it can be written in Punycode. */
enum { IDN2_NO_CODESET = -102 };
int idn2_lookup_ul(const char *name, char **out, int flags);
int idn2_lookup_ul(const char *name, char **out, int flags)
{
    (void)name;
    (void)flags;
    *out = NULL;
    return IDN2_NO_CODESET;
}

/* NULL: older than is asked for. */
const char *idn2_check_version(const char *least);
const char *idn2_check_version(const char *least)
{
    (void)least;
    return NULL;
}

/* --- what is never called --- */

/* A pointer to the name of a kind of names. */
extern const void *const GSS_C_NT_HOSTBASED_SERVICE;
const void *const GSS_C_NT_HOSTBASED_SERVICE = NULL;

static _Noreturn void never_called(void)
{
    fputs("libcurl called a library that is not linked; ending, a restart loses nothing\n", stderr);
    abort();
}

#define STUB(name)                                                                                                     \
    void name(void);                                                                                                   \
    __attribute__((alias("never_called"))) void name(void);

/* clang-format off */
/* SSH */
STUB(libssh2_version)
STUB(libssh2_agent_connect)
STUB(libssh2_agent_disconnect)
STUB(libssh2_agent_free)
STUB(libssh2_agent_get_identity)
STUB(libssh2_agent_init)
STUB(libssh2_agent_list_identities)
STUB(libssh2_agent_userauth)
STUB(libssh2_channel_free)
STUB(libssh2_channel_read_ex)
STUB(libssh2_channel_send_eof)
STUB(libssh2_channel_wait_closed)
STUB(libssh2_channel_wait_eof)
STUB(libssh2_channel_write_ex)
STUB(libssh2_hostkey_hash)
STUB(libssh2_knownhost_add)
STUB(libssh2_knownhost_checkp)
STUB(libssh2_knownhost_del)
STUB(libssh2_knownhost_free)
STUB(libssh2_knownhost_get)
STUB(libssh2_knownhost_init)
STUB(libssh2_knownhost_readfile)
STUB(libssh2_knownhost_writefile)
STUB(libssh2_scp_recv2)
STUB(libssh2_scp_send64)
STUB(libssh2_session_abstract)
STUB(libssh2_session_block_directions)
STUB(libssh2_session_callback_set)
STUB(libssh2_session_disconnect_ex)
STUB(libssh2_session_flag)
STUB(libssh2_session_free)
STUB(libssh2_session_handshake)
STUB(libssh2_session_hostkey)
STUB(libssh2_session_init_ex)
STUB(libssh2_session_last_errno)
STUB(libssh2_session_last_error)
STUB(libssh2_session_method_pref)
STUB(libssh2_session_set_blocking)
STUB(libssh2_sftp_close_handle)
STUB(libssh2_sftp_init)
STUB(libssh2_sftp_last_error)
STUB(libssh2_sftp_mkdir_ex)
STUB(libssh2_sftp_open_ex)
STUB(libssh2_sftp_read)
STUB(libssh2_sftp_readdir_ex)
STUB(libssh2_sftp_rename_ex)
STUB(libssh2_sftp_rmdir_ex)
STUB(libssh2_sftp_seek64)
STUB(libssh2_sftp_shutdown)
STUB(libssh2_sftp_stat_ex)
STUB(libssh2_sftp_statvfs)
STUB(libssh2_sftp_symlink_ex)
STUB(libssh2_sftp_unlink_ex)
STUB(libssh2_sftp_write)
STUB(libssh2_userauth_authenticated)
STUB(libssh2_userauth_keyboard_interactive_ex)
STUB(libssh2_userauth_list)
STUB(libssh2_userauth_password_ex)
STUB(libssh2_userauth_publickey_fromfile_ex)
/* LDAP */
STUB(ber_bvfree)
STUB(ber_free)
STUB(ber_memfree)
STUB(ber_memvfree)
STUB(ber_sockbuf_add_io)
STUB(ldap_abandon_ext)
STUB(ldap_err2string)
STUB(ldap_free_urldesc)
STUB(ldap_get_attribute_ber)
STUB(ldap_get_dn_ber)
STUB(ldap_get_option)
STUB(ldap_init_fd)
STUB(ldap_memfree)
STUB(ldap_msgfree)
STUB(ldap_msgtype)
STUB(ldap_parse_result)
STUB(ldap_parse_sasl_bind_result)
STUB(ldap_pvt_url_scheme2proto)
STUB(ldap_result)
STUB(ldap_sasl_bind)
STUB(ldap_search_ext)
STUB(ldap_set_option)
STUB(ldap_start_tls)
STUB(ldap_unbind_ext)
STUB(ldap_url_parse)
/* RTMP */
STUB(RTMP_Alloc)
STUB(RTMP_Close)
STUB(RTMP_Connect1)
STUB(RTMP_ConnectStream)
STUB(RTMP_Free)
STUB(RTMP_Init)
STUB(RTMP_Read)
STUB(RTMP_SetBufferMS)
STUB(RTMP_SetupURL)
STUB(RTMP_Write)
/* Kerberos, by GSS-API */
STUB(gss_import_name)
STUB(gss_delete_sec_context)
STUB(gss_display_name)
STUB(gss_display_status)
STUB(gss_init_sec_context)
STUB(gss_inquire_context)
STUB(gss_release_buffer)
STUB(gss_release_name)
STUB(gss_unwrap)
STUB(gss_wrap)
/* cookies of public suffixes */
STUB(psl_get_version)
STUB(psl_builtin)
STUB(psl_free)
STUB(psl_is_cookie_domain_acceptable)
STUB(psl_latest)
/* IDN */
STUB(idn2_free)
/* Brotli */
STUB(BrotliDecoderVersion)
STUB(BrotliDecoderDecompressStream)
STUB(BrotliDecoderDestroyInstance)
STUB(BrotliDecoderGetErrorCode)
/* Zstandard */
STUB(ZSTD_versionNumber)
STUB(ZSTD_decompressStream)
STUB(ZSTD_freeDStream)
STUB(ZSTD_isError)
/* clang-format on */
